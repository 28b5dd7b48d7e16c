import {
  type AuditEventsQuery,
  type DeploymentsQuery,
  IdempotencyKey,
  type NewModel,
  type OrgModelsQuery,
  type PreviewPayload,
  type Redeploy,
  type RequestsQuery,
  type SuspicionsQuery,
  Unavailable
} from "@seatrial/api"
import type { ScalingRequest } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { type Calls, type Filters, none, segment } from "./calls.ts"
import { Unreachable } from "./failures.ts"
import { everyPage } from "./pages.ts"
import { type WaitOptions, waitUntilFinished } from "./waitForDeployment.ts"

/**
 * Cancels an unfinished run. An attempt whose response was lost may have succeeded: if the next attempt finds the run
 * finished with the status `cancelled`, the call succeeds. In any other case a finished run is `DeploymentFinished`.
 */
const makeCancel = ({ again, once, raw, withId }: Calls) => {
  const getOrgDeployment = (deployment: string) => withId(deployment, (id) => raw.org.getDeployment({ params: { id }, ...none }))

  return (deployment: string) =>
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
}

/**
 * Deletes a model permanently. If the response of an attempt was lost and the next attempt finds no model, the first
 * one deleted it.
 */
const makeDeleteModel =
  ({ again, once, raw }: Calls) =>
  (model: string) =>
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

/** Deployments with the phases of the `/v1` API family, and their operations. */
export const deploymentOperations = (calls: Calls) => {
  const { call, raw, withId } = calls
  return {
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
    progress: (deployment: string) => withId(deployment, (id) => raw.deployments.progress({ params: { id }, ...none })),
    cancel: makeCancel(calls)
  }
}

export const requestOperations = ({ call, plain, raw, withId }: Calls) => ({
  list: ({ pageSize, ...filters }: Filters<RequestsQuery> = {}) => everyPage(pageSize, (page) => call(raw.requests.list({ query: { ...filters, ...page } }))),
  page: (query: RequestsQuery = {}) => call(raw.requests.list({ query })),
  get: (request: string) => withId(request, (request_id) => raw.requests.get({ params: { request_id }, ...none })),
  receipt: (request: string) => withId(request, (request_id) => plain(raw.requests.receipt({ params: { request_id }, ...none })))
})

/** The data of the organization. Deployments have every phase under its full name. */
export const orgOperations = ({ accepting, call, plain, raw, signed, withId }: Calls) => ({
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
    get: (deployment: string) => withId(deployment, (id) => raw.org.getDeployment({ params: { id }, ...none }))
  },
  suspicions: {
    list: ({ pageSize }: Filters<SuspicionsQuery> = {}) => everyPage(pageSize, (page) => call(raw.org.listSuspicions({ query: page }))),
    page: (query: SuspicionsQuery = {}) => call(raw.org.listSuspicions({ query })),
    /** The requests that the engine of the suspicion answered since its last good probe. */
    requests: (suspicion: string, { pageSize }: Filters<SuspicionsQuery> = {}) =>
      everyPage(pageSize, (page) => withId(suspicion, (id) => raw.org.listSuspicionRequests({ params: { id }, query: page }))),
    requestsPage: (suspicion: string, query: SuspicionsQuery = {}) => withId(suspicion, (id) => raw.org.listSuspicionRequests({ params: { id }, query }))
  },
  auditEvents: {
    list: ({ pageSize, ...filters }: Filters<AuditEventsQuery> = {}) =>
      everyPage(pageSize, (page) => call(raw.org.listAuditEvents({ query: { ...filters, ...page } }))),
    page: (query: AuditEventsQuery = {}) => call(raw.org.listAuditEvents({ query })),
    get: (event: string) => withId(event, (id) => raw.org.getAuditEvent({ params: { id }, ...none }))
  }
})

/** The organization's own models, by id or name. */
export const modelOperations = (calls: Calls) => {
  const { call, raw, withId } = calls
  return {
    /** All serving models. */
    list: () => Effect.map(call(raw.models.list(none)), ({ data }) => data),
    /** The model takes no requests until it is enabled, and its GPUs are released. */
    disable: (model: string) => withId(model, (id) => raw.models.disable({ params: { id }, ...none, payload: {} })),
    /** Serves the previously serving revision again. */
    enable: (model: string) => withId(model, (id) => raw.models.enable({ params: { id }, ...none, payload: {} })),
    /** How many engines serve the model. */
    scaling: (model: string) => withId(model, (id) => raw.models.getScaling({ params: { id }, ...none })),
    /** Changes how many engines serve the model. */
    scale: (model: string, scaling: ScalingRequest) => withId(model, (id) => raw.models.setScaling({ params: { id }, ...none, payload: scaling })),
    /** The requests that run on the model's engines or wait for them. */
    load: (model: string) => withId(model, (id) => raw.models.getLoad({ params: { id }, ...none })),
    delete: makeDeleteModel(calls)
  }
}

/** All published models; needs no key. */
export const catalogOperations = ({ call, raw, unexpectedResponse }: Calls) => ({
  list: () =>
    Effect.flatMap(call(raw.catalog.list(none)), ({ body }) =>
      body === undefined ? unexpectedResponse("304 to an unconditional request") : Effect.succeed(body.data)
    )
})

export const systemOperations = ({ call, probe, raw, unexpectedResponse }: Calls) => ({
  health: () => probe(raw.system.health()),
  readiness: () => call(raw.system.readiness()),
  /** The public keys of receipt signatures; needs no key. */
  signingKeys: () =>
    Effect.flatMap(probe(raw.system.signingKeys()), ({ body }) =>
      body === undefined ? unexpectedResponse("304 to an unconditional request") : Effect.succeed(body)
    )
})

/** Follows a run until it ends; see `WaitOptions`. */
export const makeWaitForDeployment = ({ once, raw, withId }: Calls) => {
  const getOrgDeployment = (deployment: string) => withId(deployment, (id) => raw.org.getDeployment({ params: { id }, ...none }))
  const progressOnce = (deployment: string) => Effect.flatMap(segment(deployment), (id) => once(raw.deployments.progress({ params: { id }, ...none })))

  return <E = never, R = never>(id: string, options: WaitOptions<E, R> = {}) => waitUntilFinished(getOrgDeployment(id), progressOnce(id), options)
}
