import type { DeploymentProgress } from "@seatrial/domain"
import { Effect, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import type { ClientFailure } from "./failures.ts"
import type { RetryPolicy } from "./retry.ts"
import { SeatrialClient } from "./SeatrialClient.ts"
import { type PublicError, toSeatrialError } from "./SeatrialError.ts"
import type { Outcome, PhaseEntry } from "./waitForDeployment.ts"

type Failure = PublicError | ClientFailure

const promised =
  <Args extends ReadonlyArray<unknown>, A>(operation: (...args: Args) => Effect.Effect<A, Failure>) =>
  (...args: Args): Promise<A> =>
    Effect.runPromise(Effect.mapError(operation(...args), toSeatrialError))

const iterated =
  <Args extends ReadonlyArray<unknown>, A>(list: (...args: Args) => Stream.Stream<A, Failure>) =>
  (...args: Args): AsyncIterable<A> =>
    Stream.toAsyncIterable(Stream.mapError(list(...args), toSeatrialError))

export interface ClientOptions {
  /** Base URL of the API, such as `http://127.0.0.1:8080`. */
  readonly address: string
  /** An API key of the organization. Without a key, only the public catalog and the probes are accessible. */
  readonly apiKey?: string
  readonly retry?: Partial<RetryPolicy>
}

export interface WaitForOptions {
  /** Called once per phase in order, including the phases before the call. */
  readonly onPhase?: (entry: PhaseEntry) => void
  /** Called with each change of the deployment's current activity. */
  readonly onProgress?: (progress: DeploymentProgress) => void
  /** Cancels the waiting, not the deployment. */
  readonly signal?: AbortSignal
  /** How long the server may be unavailable, in milliseconds; default 10 minutes. */
  readonly patience?: number
}

/**
 * The client for programs without Effect: methods return promises and reject with a `SeatrialError`, lists are async
 * iterables.
 */
export const createClient = ({ address, apiKey, retry }: ClientOptions) => {
  const options = { address, ...(apiKey === undefined ? {} : { apiKey: Redacted.make(apiKey) }), ...(retry === undefined ? {} : { retry }) }
  const client = Effect.runSync(SeatrialClient.make(options).pipe(Effect.mapError(toSeatrialError), Effect.provide(FetchHttpClient.layer)))
  const { catalog, deployments, models, org, requests, spending, system } = client
  return {
    deployments: {
      preview: promised(deployments.preview),
      create: promised(deployments.create),
      list: iterated(deployments.list),
      page: promised(deployments.page),
      get: promised(deployments.get),
      events: promised(deployments.events),
      progress: promised(deployments.progress),
      cancel: promised(deployments.cancel)
    },
    requests: { list: iterated(requests.list), page: promised(requests.page), get: promised(requests.get), receipt: promised(requests.receipt) },
    org: {
      requests: { list: iterated(org.requests.list), page: promised(org.requests.page), get: promised(org.requests.get) },
      receipts: { get: promised(org.receipts.get), signed: promised(org.receipts.signed) },
      models: { list: iterated(org.models.list), page: promised(org.models.page), get: promised(org.models.get) },
      deployments: { list: iterated(org.deployments.list), page: promised(org.deployments.page), get: promised(org.deployments.get) },
      suspicions: {
        list: iterated(org.suspicions.list),
        page: promised(org.suspicions.page),
        requests: iterated(org.suspicions.requests),
        requestsPage: promised(org.suspicions.requestsPage)
      },
      auditEvents: { list: iterated(org.auditEvents.list), page: promised(org.auditEvents.page), get: promised(org.auditEvents.get) }
    },
    models: {
      list: promised(models.list),
      disable: promised(models.disable),
      enable: promised(models.enable),
      scaling: promised(models.scaling),
      scale: promised(models.scale),
      load: promised(models.load),
      delete: promised(models.delete)
    },
    catalog: { list: promised(catalog.list) },
    spending: { get: promised(spending.get) },
    system: { health: promised(system.health), readiness: promised(system.readiness), signingKeys: promised(system.signingKeys) },
    /** Follows a run until it ends: `activated`, `failed` or `cancelled`. */
    waitForDeployment: (id: string, { onPhase, onProgress, patience, signal }: WaitForOptions = {}): Promise<Outcome> =>
      Effect.runPromise(
        client
          .waitForDeployment(id, {
            ...(onPhase === undefined ? {} : { onPhase: (entry: PhaseEntry) => Effect.sync(() => onPhase(entry)) }),
            ...(onProgress === undefined ? {} : { onProgress: (progress: DeploymentProgress) => Effect.sync(() => onProgress(progress)) }),
            ...(patience === undefined ? {} : { patience })
          })
          .pipe(Effect.mapError(toSeatrialError)),
        signal === undefined ? {} : { signal }
      ).catch((cause) => {
        throw signal?.aborted === true ? signal.reason : cause
      })
  }
}
