import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { CatalogModelList, cached } from "./envelopes.ts"
import { Authorization, Boundary } from "./middleware.ts"
import { policy } from "./policy.ts"
import { NoQuery } from "./queries.ts"

/** The published models, for everybody: no key is asked for, and one that is sent is not looked at. */
export class CatalogGroup extends HttpApiGroup.make("catalog")
  .add(
    HttpApiEndpoint.get("list", "/v1/catalog/models", {
      query: NoQuery,
      success: [HttpApiSchema.WithHeaders(CatalogModelList, cached), HttpApiSchema.WithHeaders(Schema.Void.pipe(HttpApiSchema.status(304)), cached)]
    })
  )
  .middleware(Boundary) {}

/** The organisation's own served models, as the OpenAI clients list them. */
export class ModelsGroup extends HttpApiGroup.make("models")
  .add(
    HttpApiEndpoint.get("list", "/v1/models", {
      query: NoQuery,
      success: CatalogModelList
    }).annotateMerge(policy("read", ["models:read"], ["inference:write"]))
  )
  .middleware(Authorization)
  .middleware(Boundary) {}
