import { DeploymentEvents, DeploymentOperation, DeploymentProgress, V1DeploymentDetail } from "@seatrial/domain"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { CreatePayload, IdempotencyKey } from "./CreateDeployment.ts"
import { Cancelled, Empty, V1DeploymentList } from "./envelopes.ts"
import { Authorization, Boundary, IdempotencyHeader } from "./middleware.ts"
import { Preview, PreviewPayload } from "./Preview.ts"
import { policy } from "./policy.ts"
import {
  BodyTooLarge,
  DeploymentFinished,
  FirstPurchaseRequired,
  IdempotencyKeyReused,
  InvalidBody,
  InvalidCursor,
  MissingScope,
  ModelDeleted,
  ModelNameTaken,
  NotFound,
  Refused,
  UnsupportedMediaType
} from "./publicErrors.ts"
import { DeploymentsQuery, NoQuery } from "./queries.ts"

const bodyErrors = [InvalidBody, BodyTooLarge, UnsupportedMediaType] as const

const Location = Schema.String.check(Schema.isPattern(/^\/v1\/deployments\/[^/]+$/u))

/**
 * Preview, create, follow and cancel deployments. One name covers some groups of phases: `staging` is `provisioning` or
 * `booting`.
 */
export class DeploymentsGroup extends HttpApiGroup.make("deployments")
  .add(
    HttpApiEndpoint.post("preview", "/v1/deployment-previews", {
      query: NoQuery,
      payload: PreviewPayload,
      success: Preview,
      error: bodyErrors
    }).annotateMerge(policy("preview", ["deployments:write"])),
    HttpApiEndpoint.post("create", "/v1/deployments", {
      query: NoQuery,
      headers: { "idempotency-key": IdempotencyKey },
      payload: CreatePayload,
      success: [
        HttpApiSchema.WithHeaders(DeploymentOperation.pipe(HttpApiSchema.status(201)), { location: Location }),
        HttpApiSchema.WithHeaders(DeploymentOperation.pipe(HttpApiSchema.status(200)), {
          location: Location,
          "idempotent-replayed": Schema.Literal("true")
        })
      ],
      error: [...bodyErrors, FirstPurchaseRequired, MissingScope, NotFound, ModelDeleted, IdempotencyKeyReused, ModelNameTaken, Refused]
    })
      .middleware(IdempotencyHeader)
      .annotateMerge(policy("write", ["deployments:write"]))
      .annotateMerge(
        OpenApi.annotations({
          description: "Also requires `models:write` unless `serve` is false. A repeated create with the same key and input returns 200."
        })
      ),
    HttpApiEndpoint.get("list", "/v1/deployments", {
      query: DeploymentsQuery,
      success: V1DeploymentList,
      error: InvalidCursor
    }).annotateMerge(policy("read", ["deployments:read"])),
    HttpApiEndpoint.get("get", "/v1/deployments/:id", {
      params: { id: Schema.String },
      query: NoQuery,
      success: V1DeploymentDetail,
      error: NotFound
    }).annotateMerge(policy("read", ["deployments:read"])),
    HttpApiEndpoint.get("events", "/v1/deployments/:id/events", {
      params: { id: Schema.String },
      query: NoQuery,
      success: DeploymentEvents,
      error: NotFound
    }).annotateMerge(policy("read", ["deployments:read"])),
    HttpApiEndpoint.get("progress", "/v1/deployments/:id/progress", {
      params: { id: Schema.String },
      query: NoQuery,
      success: DeploymentProgress,
      error: NotFound
    }).annotateMerge(policy("read", ["deployments:read"])),
    HttpApiEndpoint.post("cancel", "/v1/deployments/:id/cancel", {
      params: { id: Schema.String },
      query: NoQuery,
      // Empty comes first: generated clients send the first schema that fits, and NoContent would match every missing
      // body.
      payload: [Empty, HttpApiSchema.NoContent],
      success: Cancelled,
      error: [...bodyErrors, NotFound, DeploymentFinished]
    }).annotateMerge(policy("write", ["deployments:write"]))
  )
  .middleware(Authorization)
  .middleware(Boundary) {}
