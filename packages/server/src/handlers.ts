import { Api, Authorization, Boundary, IdempotencyHeader } from "@seatrial/api"
import { DatabaseSchema } from "@seatrial/store"
import { Context, Effect, Layer, Scope } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { auditEventReads } from "./auditEvents.ts"
import { cancelOperation } from "./cancel.ts"
import { catalogOperation, ownModelsOperation } from "./catalog.ts"
import { createOperation } from "./create.ts"
import { deploymentReads, orgFamily, v1Family } from "./deploymentReads.ts"
import { orgModelReads } from "./orgModels.ts"
import { ownModelChanges } from "./ownModels.ts"
import { previewOperation } from "./preview.ts"
import { unavailable } from "./publicErrors.ts"
import { requestOperations } from "./requests.ts"
import { signingKeysOperation } from "./signingKeys.ts"
import { spendingOperation } from "./spending.ts"
import { suspicionOperations } from "./suspicions.ts"

const ok = { status: "ok" } as const

const readiness = Effect.gen(function* () {
  const { check } = yield* DatabaseSchema
  return check.pipe(
    Effect.timeout("2 seconds"),
    Effect.catchCause(() => unavailable("The database is unavailable.", 1)),
    Effect.flatMap((problem) => (problem === null ? Effect.succeed(ok) : unavailable(problem, 1)))
  )
})

/** Builds all operations. Their dependencies are resolved here, once. */
const operations = Effect.all({
  audit: auditEventReads,
  cancel: cancelOperation,
  catalog: catalogOperation,
  create: createOperation,
  deployments: deploymentReads,
  models: orgModelReads,
  ownModelChanges,
  ownModels: ownModelsOperation,
  preview: previewOperation,
  readiness,
  requests: requestOperations,
  signingKeys: signingKeysOperation,
  spending: spendingOperation,
  suspicions: suspicionOperations
})

const groups = ({
  audit,
  cancel,
  catalog,
  create,
  deployments,
  models,
  ownModelChanges,
  ownModels,
  preview,
  readiness,
  requests,
  signingKeys,
  spending,
  suspicions
}: Effect.Success<typeof operations>) =>
  Layer.mergeAll(
    HttpApiBuilder.group(Api, "deployments", (handlers) =>
      handlers
        .handleRaw("preview", preview)
        .handleRaw("create", create)
        .handleRaw("cancel", cancel)
        .handle("list", deployments.list("deployments.list", v1Family))
        .handle("get", deployments.get(v1Family))
        .handle("events", deployments.events)
        .handle("progress", deployments.progress)
    ),
    HttpApiBuilder.group(Api, "requests", (handlers) =>
      handlers.handle("list", requests.list("requests.list")).handle("get", requests.get).handle("receipt", requests.receipt)
    ),
    HttpApiBuilder.group(Api, "org", (handlers) =>
      handlers
        .handle("listRequests", requests.list("listRequests"))
        .handle("getRequest", requests.get)
        .handle("getReceipt", requests.receipt)
        .handle("listDeployments", deployments.list("listDeployments", orgFamily))
        .handle("getDeployment", deployments.get(orgFamily))
        .handle("listOrgModels", models.list)
        .handle("getOrgModel", models.get)
        .handle("listSuspicions", suspicions.list)
        .handle("listSuspicionRequests", suspicions.requests)
        .handle("listAuditEvents", audit.list)
        .handle("getAuditEvent", audit.get)
    ),
    HttpApiBuilder.group(Api, "models", (handlers) =>
      handlers
        .handle("list", ownModels)
        .handleRaw("disable", ownModelChanges.disable)
        .handleRaw("enable", ownModelChanges.enable)
        .handle("getScaling", ownModelChanges.getScaling)
        .handle("getLoad", ownModelChanges.getLoad)
        .handleRaw("setScaling", ownModelChanges.setScaling)
        .handle("delete", ownModelChanges.remove)
    ),
    HttpApiBuilder.group(Api, "catalog", (handlers) => handlers.handle("list", catalog)),
    HttpApiBuilder.group(Api, "spending", (handlers) => handlers.handle("get", spending)),
    HttpApiBuilder.group(Api, "system", (handlers) =>
      handlers
        .handle("health", () => Effect.succeed(ok))
        .handle("readiness", () => readiness)
        .handle("signingKeys", signingKeys)
    )
  )

type GroupServices = Scope.Scope | Authorization | Boundary | IdempotencyHeader
const pickGroupServices = (context: Context.Context<GroupServices>): Context.Context<GroupServices> =>
  Context.pick(Scope.Scope, Authorization, Boundary, IdempotencyHeader)(context)

/**
 * The handlers of all operations. Groups get only the services of their middleware, because their context is copied for
 * each request.
 */
export const layerHandlers = Layer.unwrap(
  Effect.map(operations, (built) => Layer.effectContext(Effect.updateContext(Layer.build(groups(built)), pickGroupServices)))
)
