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
  /** Where the API is, as `http://127.0.0.1:8080`. */
  readonly address: string
  /** An API key of the organisation; without one only the public catalog and the probes answer. */
  readonly apiKey?: Redacted.Redacted
  readonly retry?: Partial<RetryPolicy>
}

/** A list's filters: its query without what pages are made of, but for their size. */
type Filters<Query> = Omit<Query, keyof PageRequest> & PageSize

const none = { query: {} }

type ReceiptAnswer = { readonly body: Receipt } | SignedReceipt

const checkAddress = (address: string) =>
  URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)
    ? Effect.succeed(address.replace(/\/+$/, ""))
    : Effect.fail(new InvalidInput({ message: `${address} is not an http or https address.`, param: "address" }))

/** An id as a segment of a path; the empty one and those that a URL swallows would name another operation. */
const segment = (id: string) => (/^\.{0,2}$/.test(id) ? Effect.fail(new InvalidInput({ message: `"${id}" is not an id.`, param: "id" })) : Effect.succeed(id))

const make = Effect.fnUntraced(function* ({ address, apiKey, retry = {} }: SeatrialClientOptions) {
  const base = yield* checkAddress(address)
  const transport = yield* HttpClient.HttpClient
  const client = recording(apiKey === undefined ? transport : HttpClient.mapRequest(transport, HttpClientRequest.bearerToken(apiKey)))
  const raw = yield* HttpApiClient.makeWith(Api, { baseUrl: base, httpClient: client })
  const once = exchange(base)
  const again = retrying({ ...defaultRetry, ...retry })
  // Every operation of the contract may be done twice: reads, previews, creates under one idempotency key, and cancels (see there).
  const call = <A, E>(operation: Parameters<typeof once<A, E, never>>[0]) => again(once(operation))

  const probe = <A>(operation: Parameters<typeof once<A, never, never>>[0]) => call<A, never>(operation)
  const withId = <A, E>(id: string, operation: (id: string) => Parameters<typeof once<A, E, never>>[0]) =>
    Effect.flatMap(segment(id), (checked) => call(operation(checked)))

  const unasked = (what: string) => Effect.fail(new VersionSkew({ message: `${base} answered ${what}.`, status: 200, requestId: null }))
  // What a receipt comes as follows from `Accept`, and from nothing else.
  const accepting = yield* HttpApiClient.endpoint(Api, {
    group: "org",
    endpoint: "getReceipt",
    httpClient: HttpClient.mapRequest(client, HttpClientRequest.setHeader("accept", signedMediaType)),
    baseUrl: base
  })
  const plain = <E>(answer: Effect.Effect<ReceiptAnswer, E>) =>
    Effect.flatMap(answer, (given) => ("payload" in given ? unasked("with a signed receipt that was not asked for") : Effect.succeed(given.body)))
  const signed = <E>(answer: Effect.Effect<ReceiptAnswer, E>) =>
    Effect.flatMap(answer, (given) => ("payload" in given ? Effect.succeed(given) : unasked("with a receipt that is not signed")))

  const getOrgDeployment = (deployment: string) => withId(deployment, (id) => raw.org.getDeployment({ params: { id }, ...none }))

  const progressOnce = (deployment: string) => Effect.flatMap(segment(deployment), (id) => once(raw.deployments.progress({ params: { id }, ...none })))
  const getProgress = (deployment: string) => withId(deployment, (id) => raw.deployments.progress({ params: { id }, ...none }))

  /**
   * Ends an unfinished run. A try whose answer was lost may have done so: where the next one then finds the run finished, and it is cancelled, that is what was
   * asked for, whoever did it. In any other case a finished run is `DeploymentFinished`.
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

  /** Deletes a model for good. If the answer of a try was lost and the next try finds no model, the first try deleted it. */
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
    /** Deployments with the phases of the `/v1` family, and what is done to them. */
    deployments: {
      /** Whether and how a source can be served: `derived`, or `refused` with reason and remedy. */
      preview: (payload: PreviewPayload) => call(raw.deployments.preview({ ...none, payload })),
      /**
       * Creates a deployment. The idempotency key is made once, if none is given, and sent with every try. `replayed` says that the operation was there already, which
       * it also is where an earlier try of this very call had been carried out.
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
      /** What the deployment does or waits for now. */
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
    /** The organisation's data; deployments with every phase under its full name. */
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
    /** The organization's own models; each by its id or name. */
    models: {
      /** Those that serve, all at once. */
      list: () => Effect.map(call(raw.models.list(none)), ({ data }) => data),
      /** It takes no requests until it is enabled, and its GPUs are given back. */
      disable: (model: string) => withId(model, (id) => raw.models.disable({ params: { id }, ...none, payload: {} })),
      /** The revision that served before serves again. */
      enable: (model: string) => withId(model, (id) => raw.models.enable({ params: { id }, ...none, payload: {} })),
      delete: deleteModel
    },
    /** The published models, all at once; needs no key. */
    catalog: {
      list: () =>
        Effect.flatMap(call(raw.catalog.list(none)), ({ body }) =>
          body === undefined ? unasked("304 to what was not conditional") : Effect.succeed(body.data)
        )
    },
    system: {
      health: () => probe(raw.system.health()),
      readiness: () => call(raw.system.readiness()),
      /** The public keys of receipts' signatures; needs no key. */
      signingKeys: () =>
        Effect.flatMap(probe(raw.system.signingKeys()), ({ body }) => (body === undefined ? unasked("304 to what was not conditional") : Effect.succeed(body)))
    },
    /** Follows a run to its end: see `WaitOptions`. */
    waitForDeployment: <E = never, R = never>(id: string, options: WaitOptions<E, R> = {}) => waitUntilFinished(getOrgDeployment(id), progressOnce(id), options)
  }
})

/** The HTTP API as the holder of one key: every operation of the contract, its errors typed, lists as streams, transient failures tried again. */
export class SeatrialClient extends Context.Service<SeatrialClient>()("seatrial/SeatrialClient", { make }) {
  static readonly layer = (options: SeatrialClientOptions) => Layer.effect(SeatrialClient, SeatrialClient.make(options))
}
