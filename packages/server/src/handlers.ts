import { Api } from "@seatrial/api"
import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { auditEventReads } from "./auditEvents.ts"
import { cancelOperation } from "./cancel.ts"
import { catalogOperation, ownModelsOperation } from "./catalog.ts"
import { createOperation } from "./create.ts"
import { deploymentReads, orgFamily, v1Family } from "./deploymentReads.ts"
import { orgModelReads } from "./orgModels.ts"
import { previewOperation } from "./preview.ts"
import { unavailable } from "./publicErrors.ts"
import { requestOperations } from "./requests.ts"

const layerDeployments = HttpApiBuilder.group(
  Api,
  "deployments",
  Effect.fnUntraced(function* (handlers) {
    const reads = yield* deploymentReads
    return handlers
      .handleRaw("preview", yield* previewOperation)
      .handleRaw("create", yield* createOperation)
      .handleRaw("cancel", yield* cancelOperation)
      .handle("list", reads.list("deployments.list", v1Family))
      .handle("get", reads.get(v1Family))
      .handle("events", reads.events)
  })
)

const layerRequests = HttpApiBuilder.group(
  Api,
  "requests",
  Effect.fnUntraced(function* (handlers) {
    const requests = yield* requestOperations
    return handlers.handle("list", requests.list("requests.list")).handle("get", requests.get).handle("receipt", requests.receipt)
  })
)

const layerOrg = HttpApiBuilder.group(
  Api,
  "org",
  Effect.fnUntraced(function* (handlers) {
    const requests = yield* requestOperations
    const reads = yield* deploymentReads
    const models = yield* orgModelReads
    const audit = yield* auditEventReads
    return handlers
      .handle("listRequests", requests.list("listRequests"))
      .handle("getRequest", requests.get)
      .handle("getReceipt", requests.receipt)
      .handle("listDeployments", reads.list("listDeployments", orgFamily))
      .handle("getDeployment", reads.get(orgFamily))
      .handle("listOrgModels", models.list)
      .handle("getOrgModel", models.get)
      .handle("listAuditEvents", audit.list)
      .handle("getAuditEvent", audit.get)
  })
)

const layerModels = HttpApiBuilder.group(
  Api,
  "models",
  Effect.fnUntraced(function* (handlers) {
    return handlers.handle("list", yield* ownModelsOperation)
  })
)

const layerCatalog = HttpApiBuilder.group(
  Api,
  "catalog",
  Effect.fnUntraced(function* (handlers) {
    return handlers.handle("list", yield* catalogOperation)
  })
)

const ok = { status: "ok" } as const

const layerSystem = HttpApiBuilder.group(
  Api,
  "system",
  Effect.fnUntraced(function* (handlers) {
    const sql = yield* SqlClient.SqlClient
    const answers = sql`SELECT 1`.pipe(
      Effect.timeout("2 seconds"),
      Effect.catchCause(() => unavailable("The database is away.", 1))
    )
    return handlers.handle("health", () => Effect.succeed(ok)).handle("readiness", () => Effect.as(answers, ok))
  })
)

/** Every operation of the contract. */
export const layerHandlers = Layer.mergeAll(layerDeployments, layerRequests, layerOrg, layerModels, layerCatalog, layerSystem)
