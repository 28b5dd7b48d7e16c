import { ModelLoad, ModelScaling, ModelScalingState, ScalingRequest } from "@seatrial/domain"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { CatalogModelList, cached, Empty } from "./envelopes.ts"
import { Authorization, Boundary } from "./middleware.ts"
import { policy } from "./policy.ts"
import { BodyTooLarge, FirstPurchaseRequired, InvalidBody, ModelManaged, ModelNotActivated, NotFound, UnsupportedMediaType } from "./publicErrors.ts"
import { NoQuery } from "./queries.ts"

/** The published models. The endpoint is public: it requires no key and ignores a key that is sent. */
export class CatalogGroup extends HttpApiGroup.make("catalog")
  .add(
    HttpApiEndpoint.get("list", "/v1/catalog/models", {
      query: NoQuery,
      success: [HttpApiSchema.WithHeaders(CatalogModelList, cached), HttpApiSchema.WithHeaders(Schema.Void.pipe(HttpApiSchema.status(304)), cached)]
    })
  )
  .middleware(Boundary) {}

/** An idempotent change of one of the organization's own models, by its id or name. */
const change = <const Name extends "disable" | "enable">(name: Name) =>
  HttpApiEndpoint.post(name, `/v1/models/:id/${name}`, {
    params: { id: Schema.String },
    query: NoQuery,
    payload: [Empty, HttpApiSchema.NoContent],
    success: HttpApiSchema.NoContent,
    error: [InvalidBody, BodyTooLarge, UnsupportedMediaType, NotFound, ModelNotActivated, ...(name === "enable" ? [FirstPurchaseRequired] : [])]
  }).annotateMerge(policy("write", ["models:write"]))

/** Lists the organization's own served models, as OpenAI clients do, and changes them. */
export class ModelsGroup extends HttpApiGroup.make("models")
  .add(
    HttpApiEndpoint.get("list", "/v1/models", {
      query: NoQuery,
      success: CatalogModelList
    }).annotateMerge(policy("read", ["models:read"], ["inference:write"])),
    change("disable"),
    change("enable"),
    HttpApiEndpoint.get("getScaling", "/v1/models/:id/scaling", {
      params: { id: Schema.String },
      query: NoQuery,
      success: ModelScalingState,
      error: NotFound
    }).annotateMerge(policy("read", ["models:read"])),
    HttpApiEndpoint.put("setScaling", "/v1/models/:id/scaling", {
      params: { id: Schema.String },
      query: NoQuery,
      payload: ScalingRequest,
      success: ModelScaling,
      error: [InvalidBody, BodyTooLarge, UnsupportedMediaType, NotFound, ModelManaged]
    }).annotateMerge(policy("write", ["models:write"])),
    HttpApiEndpoint.get("getLoad", "/v1/models/:id/load", {
      params: { id: Schema.String },
      query: NoQuery,
      success: ModelLoad,
      error: NotFound
    }).annotateMerge(policy("read", ["models:read"])),
    HttpApiEndpoint.delete("delete", "/v1/models/:id", {
      params: { id: Schema.String },
      query: NoQuery,
      success: HttpApiSchema.NoContent,
      error: [NotFound, ModelManaged]
    }).annotateMerge(policy("write", ["models:write"]))
  )
  .middleware(Authorization)
  .middleware(Boundary) {}
