import { zeroPrices } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import { type Caller, Catalog, catalogModel } from "@seatrial/store"
import { Effect, Option } from "effect"
import { GatewayConfig } from "./GatewayConfig.ts"
import { missingScope, modelNotFound, type Refusal, unsupportedEndpoint } from "./refusals.ts"

const list = "/v1/models"
const prefix = `${list}/`

/** Paths of OpenAI's API for which there is no class of models yet. */
const unserved = new Set([
  "/v1/embeddings",
  "/v1/moderations",
  "/v1/audio/speech",
  "/v1/audio/transcriptions",
  "/v1/audio/translations",
  "/v1/images/generations",
  "/v1/images/edits",
  "/v1/images/variations"
])

/** The methods that a path beside those of inference takes; null where there is no such path. */
export const methodsOf = (path: string): string | null =>
  unserved.has(path) ? "OPTIONS, POST" : path === list || path.startsWith(prefix) ? "GET, HEAD, OPTIONS" : null

/**
 * The requests that are the gateway's where API and gateway share an address, in addition to those of inference. The list of models is the API's there, and the same; so
 * are the changes of a model.
 */
export const isOtherPath = (path: string, method: string): boolean =>
  path !== list && methodsOf(path) !== null && !(path.startsWith(prefix) && (method === "POST" || method === "DELETE"))

/** The name in a path, where slashes may stand encoded or as they are; null where its encoding means nothing, or has what no text in the database has. */
const nameIn = (path: string): string | null => {
  try {
    const name = decodeURIComponent(path.slice(prefix.length))
    return name.includes("\0") ? null : name
  } catch {
    return null
  }
}

/** Answers what models there are, as the API does: JSON. One that the organisation may call is found by its name. */
export const makeOtherPaths = Effect.gen(function* () {
  const catalog = yield* Catalog
  const { platformName } = yield* GatewayConfig

  return Effect.fnUntraced(function* ({ orgId, orgSlug, scopes }: Caller, path: string): Effect.fn.Return<string, Refusal> {
    if (!scopes.has("models:read") && !scopes.has("inference:write")) return yield* missingScope("models:read")
    if (unserved.has(path)) return yield* unsupportedEndpoint(`No model is served on ${path}.`, "model")
    if (path === list) {
      const models = yield* catalog.ownedBy(orgId)
      return JSON.stringify({ object: "list", data: models.map((model) => catalogModel(model, orgSlug, zeroPrices, engineWire(model.runtime))) })
    }
    const name = nameIn(path)
    const found = name === null ? Option.none() : yield* catalog.find(orgId, name)
    if (Option.isNone(found)) return yield* modelNotFound(name ?? path)
    const model = found.value
    const own = model.orgSlug === orgSlug
    return JSON.stringify(catalogModel(model, own ? orgSlug : platformName, own ? zeroPrices : model.prices, engineWire(model.runtime)))
  })
})
