import {
  Api,
  type AuditEventsQuery,
  type DeploymentsQuery,
  IdempotencyKey,
  type NewModel,
  type OrgModelsQuery,
  type PreviewPayload,
  type Redeploy,
  type RequestsQuery,
  Unavailable
} from "@seatrial/api"
import { type Receipt, type SignedReceipt, signedMediaType } from "@seatrial/domain"
import { Context, Effect, Layer, type Redacted, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { exchange, recording } from "./exchange.ts"
import { InvalidInput, Unreachable, VersionSkew } from "./failures.ts"
import { everyPage, type PageRequest, type PageSize } from "./pages.ts"
import { defaultRetry, type RetryPolicy, retrying } from "./retry.ts"
import { type WaitOptions, waitUntilFinished } from "./waitForDeployment.ts"

export interface SeatrialClientOptions {
  /** Base URL of the API, such as `http://127.0.0.1:8080`. */
  readonly address: string
  /** An API key of the organization. Without a key, only the public catalog and the probes are accessible. */
  readonly apiKey?: Redacted.Redacted
  readonly retry?: Partial<RetryPolicy>
}

/** The filters of a list: its query without the page cursor. */
type Filters<Query> = Omit<Query, keyof PageRequest> & PageSize

const none = { query: {} }

type ReceiptAnswer = { readonly body: Receipt } | SignedReceipt

const checkAddress = (address: string) =>
  URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)
    ? Effect.succeed(address.replace(/\/+$/, ""))
    : Effect.fail(new InvalidInput({ message: `${address} is not an http or https address.`, param: "address" }))

/** An id as a path segment. An empty id, `.` and `..` are rejected, because the URL would address another operation. */
const segment = (id: string) => (/^\.{0,2}$/.test(id) ? Effect.fail(new InvalidInput({ message: `"${id}" is not an id.`, param: "id" })) : Effect.succeed(id))

const make = Effect.fnUntraced(function* ({ address, apiKey, retry = {} }: SeatrialClientOptions) {
  const base = yield* checkAddress(address)
  const transport = yield* HttpClient.HttpClient
  const client = recording(apiKey === undefined ? transport : HttpClient.mapRequest(transport, HttpClientRequest.bearerToken(apiKey)))
  const raw = yield* HttpApiClient.makeWith(Api, { baseUrl: base, httpClient: client })
  const once = exchange(base)
  const again = retrying({ ...defaultRetry, ...retry })
  // Every operation of the contract is safe to repeat: reads, previews, creates with the same idempotency key, and
  // cancels (see `cancel`).
  const call = <A, E>(operation: Parameters<typeof once<A, E, never>>[0]) => again(once(operation))

  const probe = <A>(operation: Parameters<typeof once<A, never, never>>[0]) => call<A, never>(operation)
  const withId = <A, E>(id: string, operation: (id: string) => Parameters<typeof once<A, E, never>>[0]) =>
    Effect.flatMap(segment(id), (checked) => call(operation(checked)))

  const unexpectedResponse = (what: string) => Effect.fail(new VersionSkew({ message: `${base} responded ${what}.`, status: 200, requestId: null }))
  // The `Accept` header alone determines the form of a receipt.
  const accepting = yield* HttpApiClient.endpoint(Api, {
    group: "org",
    endpoint: "getReceipt",
    httpClient: HttpClient.mapRequest(client, HttpClientRequest.setHeader("accept", signedMediaType)),
    baseUrl: base
  })
  const plain = <E>(answer: Effect.Effect<ReceiptAnswer, E>) =>
    Effect.flatMap(answer, (receipt) =>
      "payload" in receipt ? unexpectedResponse("with a signed receipt that was not requested") : Effect.succeed(receipt.body)
    )
  const signed = <E>(answer: Effect.Effect<ReceiptAnswer, E>) =>
    Effect.flatMap(answer, (receipt) => ("payload" in receipt ? Effect.succeed(receipt) : unexpectedResponse("with a receipt that is not signed")))

  const getOrgDeployment = (deployment: string) => withId(deployment, (id) => raw.org.getDeployment({ params: { id }, ...none }))

  const progressOnce = (deployment: string) => Effect.flatMap(segment(deployment), (id) => once(raw.deployments.progress({ params: { id }, ...none })))
  const getProgress = (deployment: string) => withId(deployment, (id) => raw.deployments.progress({ params: { id }, ...none }))

  /**
   * Cancels an unfinished run. An attempt whose response was lost may have succeeded: if the next attempt finds the run
   * finished with the status `cancelled`, the call succeeds. In any other case a finished run is `DeploymentFinished`.
   */
  const cancel = (deployment: string) =>
    Effect.suspend(() => {
      let uncertain = false
      const operation = Effect.flatMap(segment(deployment), (id) => once(raw.deployments.cancel({ params: { id }, ...none, payload: {} })))
      const noted = Effect.tapError(operation, (failure) =>
        Effect.sync(() => {
          uncertain ||= failure instanceof Unreachable || failure instanceof Unavailable
        })
      )
      return Effect.catchTag(again(noted), "DeploymentFinished", (finished) => {
        if (!uncertain) return Effect.fail(finished)
        return getOrgDeployment(deployment).pipe(
          Effect.catch(() => Effect.fail(finished)),
          Effect.flatMap(({ id, status }) => (status === "cancelled" ? Effect.succeed({ id, cancelled: true } as const) : Effect.fail(finished)))
        )
      })
    })

  /**
   * Deletes a model permanently. If the response of an attempt was lost and the next attempt finds no model, the first
   * one deleted it.
   */
  const deleteModel = (model: string) =>
    Effect.suspend(() => {
      let isUncertain = false
      const operation = Effect.flatMap(segment(model), (id) => once(raw.models.delete({ params: { id }, ...none })))
      const noted = Effect.tapError(operation, (failure) =>
        Effect.sync(() => {
          isUncertain ||= failure instanceof Unreachable || failure instanceof Unavailable
        })
      )
      return Effect.catchTag(again(noted), "NotFound", (missing) => (isUncertain ? Effect.void : Effect.fail(missing)))
    })

  return {
    /** Deployments with the phases of the `/v1` API family, and their operations. */
    deployments: {
      /** Whether and how a source can be served: `derived`, or `refused` with a reason and a remedy. */
      preview: (payload: PreviewPayload) => call(raw.deployments.preview({ ...none, payload })),
      /**
       * Creates a deployment. If no idempotency key is given, one is generated; every attempt sends the same key.
       * `replayed` means that the operation already existed, possibly because of an earlier attempt of the same call.
       */
      create: (payload: NewModel | Redeploy, options: { readonly idempotencyKey?: string } = {}) =>
        Effect.suspend(() => {
          const idempotencyKey = options.idempotencyKey ?? crypto.randomUUID()
          const operation = Schema.decodeEffect(IdempotencyKey)(idempotencyKey).pipe(
            Effect.flatMap((key) => raw.deployments.create({ ...none, headers: { "idempotency-key": key }, payload }))
          )
          return Effect.map(call(operation), ({ body, headers }) => ({ operation: body, replayed: "idempotent-replayed" in headers, idempotencyKey }))
        }),
      list: ({ pageSize, ...filters }: Filters<DeploymentsQuery> = {}) =>
        everyPage(pageSize, (page) => call(raw.deployments.list({ query: { ...filters, ...page } }))),
      page: (query: DeploymentsQuery = {}) => call(raw.deployments.list({ query })),
      get: (deployment: string) => withId(deployment, (id) => raw.deployments.get({ params: { id }, ...none })),
      events: (deployment: string) => withId(deployment, (id) => raw.deployments.events({ params: { id }, ...none })),
      /** The current activity of the deployment. */
      progress: getProgress,
      cancel
    },
    requests: {
      list: ({ pageSize, ...filters }: Filters<RequestsQuery> = {}) =>
        everyPage(pageSize, (page) => call(raw.requests.list({ query: { ...filters, ...page } }))),
      page: (query: RequestsQuery = {}) => call(raw.requests.list({ query })),
      get: (request: string) => withId(request, (request_id) => raw.requests.get({ params: { request_id }, ...none })),
      receipt: (request: string) => withId(request, (request_id) => plain(raw.requests.receipt({ params: { request_id }, ...none })))
    },
    /** The data of the organization. Deployments have every phase under its full name. */
    org: {
      requests: {
        list: ({ pageSize, ...filters }: Filters<RequestsQuery> = {}) =>
          everyPage(pageSize, (page) => call(raw.org.listRequests({ query: { ...filters, ...page } }))),
        page: (query: RequestsQuery = {}) => call(raw.org.listRequests({ query })),
        get: (request: string) => withId(request, (request_id) => raw.org.getRequest({ params: { request_id }, ...none }))
      },
      receipts: {
        get: (request: string) => withId(request, (request_id) => plain(raw.org.getReceipt({ params: { request_id }, ...none }))),
        /** The receipt with its signature in one document, for `verifyReceipt`. */
        signed: (request: string) => withId(request, (request_id) => signed(accepting({ params: { request_id }, ...none })))
      },
      models: {
        list: ({ pageSize, ...filters }: Filters<OrgModelsQuery> = {}) =>
          everyPage(pageSize, (page) => call(raw.org.listOrgModels({ query: { ...filters, ...page } }))),
        page: (query: OrgModelsQuery = {}) => call(raw.org.listOrgModels({ query })),
        get: (model: string) => withId(model, (id) => raw.org.getOrgModel({ params: { id }, ...none }))
      },
      deployments: {
        list: ({ pageSize, ...filters }: Filters<DeploymentsQuery> = {}) =>
          everyPage(pageSize, (page) => call(raw.org.listDeployments({ query: { ...filters, ...page } }))),
        page: (query: DeploymentsQuery = {}) => call(raw.org.listDeployments({ query })),
        get: getOrgDeployment
      },
      auditEvents: {
        list: ({ pageSize, ...filters }: Filters<AuditEventsQuery> = {}) =>
          everyPage(pageSize, (page) => call(raw.org.listAuditEvents({ query: { ...filters, ...page } }))),
        page: (query: AuditEventsQuery = {}) => call(raw.org.listAuditEvents({ query })),
        get: (event: string) => withId(event, (id) => raw.org.getAuditEvent({ params: { id }, ...none }))
      }
    },
    /** The organization's own models, by id or name. */
    models: {
      /** All serving models. */
      list: () => Effect.map(call(raw.models.list(none)), ({ data }) => data),
      /** The model takes no requests until it is enabled, and its GPUs are released. */
      disable: (model: string) => withId(model, (id) => raw.models.disable({ params: { id }, ...none, payload: {} })),
      /** Serves the previously serving revision again. */
      enable: (model: string) => withId(model, (id) => raw.models.enable({ params: { id }, ...none, payload: {} })),
      delete: deleteModel
    },
    /** All published models; needs no key. */
    catalog: {
      list: () =>
        Effect.flatMap(call(raw.catalog.list(none)), ({ body }) =>
          body === undefined ? unexpectedResponse("304 to an unconditional request") : Effect.succeed(body.data)
        )
    },
    /** What the organization may spend and has spent. */
    spending: { get: () => call(raw.spending.get(none)) },
    system: {
      health: () => probe(raw.system.health()),
      readiness: () => call(raw.system.readiness()),
      /** The public keys of receipt signatures; needs no key. */
      signingKeys: () =>
        Effect.flatMap(probe(raw.system.signingKeys()), ({ body }) =>
          body === undefined ? unexpectedResponse("304 to an unconditional request") : Effect.succeed(body)
        )
    },
    /** Follows a run until it ends; see `WaitOptions`. */
    waitForDeployment: <E = never, R = never>(id: string, options: WaitOptions<E, R> = {}) => waitUntilFinished(getOrgDeployment(id), progressOnce(id), options)
  }
})

/**
 * A client of the HTTP API with one key: every operation of the contract with typed errors, lists as streams, and
 * retries of transient failures.
 */
export class SeatrialClient extends Context.Service<SeatrialClient>()("seatrial/SeatrialClient", { make }) {
  static readonly layer = (options: SeatrialClientOptions) => Layer.effect(SeatrialClient, SeatrialClient.make(options))
}
