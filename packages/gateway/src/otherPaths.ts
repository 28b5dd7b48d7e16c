import { zeroPrices } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import { type Caller, Catalog, catalogModel } from "@seatrial/store"
import { Effect, Option } from "effect"
import { GatewayConfig } from "./GatewayConfig.ts"
import { missingScope, modelNotFound, type Refusal, unsupportedEndpoint } from "./refusals.ts"
import { Turns } from "./Turns.ts"

const list = "/v1/models"
const prefix = `${list}/`

/**
 * The paths of a model's number of engines and of its load. A model may have such a name itself:
 * `/v1/models/acme/load`.
 */
const extensionPath = /^\/v1\/models\/([^/]+)\/(scaling|load)$/

/** Paths of OpenAI's API that no class of models serves yet. */
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

/** The methods of a path other than the inference paths; null if the path does not exist. */
export const methodsOf = (path: string): string | null =>
  unserved.has(path) ? "OPTIONS, POST" : path === list || path.startsWith(prefix) ? "GET, HEAD, OPTIONS" : null

/** Methods that change a model. */
const changes = new Set(["POST", "PUT", "DELETE"])

/**
 * The additional requests that the gateway handles if API and gateway share an address. The API serves the same model
 * list and handles changes of a model and its number of engines.
 */
export const isOtherPath = (path: string, method: string): boolean =>
  path !== list && methodsOf(path) !== null && !(path.startsWith(prefix) && (changes.has(method) || extensionPath.test(path)))

/**
 * The model name of a path; its slashes may be percent-encoded. Null if the encoding is invalid or the name has a null
 * character, which the database cannot store.
 */
const nameIn = (encoded: string): string | null => {
  try {
    const name = decodeURIComponent(encoded)
    return name.includes("\0") ? null : name
  } catch {
    return null
  }
}

/**
 * Model queries of one organization at once. They share the database connections with the records of all requests, and
 * a list may have thousands of models.
 */
const maxQueries = 2

/**
 * Answers model queries with the same JSON as the API. The caller's own models and published models are found by name.
 */
export const makeOtherPaths = Effect.gen(function* () {
  const catalog = yield* Catalog
  const { platformName } = yield* GatewayConfig
  const turns = new Turns(maxQueries)

  /**
   * The number of engines of the organization's own model, or its load, as the API returns it; none if the path is
   * another one.
   */
  const extension = Effect.fnUntraced(function* ({ orgId, scopes }: Caller, path: string): Effect.fn.Return<Option.Option<string>, Refusal> {
    const [, encoded = "", kind] = extensionPath.exec(path) ?? []
    const name = nameIn(encoded)
    if (name === null || name === "") return Option.none()
    if (!scopes.has("models:read")) return yield* missingScope("models:read")
    if (kind === "load") return Option.map(yield* catalog.load(orgId, name), (load) => JSON.stringify(load))
    return Option.map(yield* catalog.scaling(orgId, name), (scaling) => JSON.stringify(scaling))
  })

  const query = Effect.fnUntraced(function* (caller: Caller, path: string): Effect.fn.Return<string, Refusal> {
    const { orgId, orgSlug } = caller
    if (path === list) {
      const models = yield* catalog.ownedBy(orgId)
      return JSON.stringify({ object: "list", data: models.map((model) => catalogModel(model, orgSlug, zeroPrices, engineWire(model.runtime))) })
    }
    const name = nameIn(path.slice(prefix.length))
    const match = name === null ? Option.none() : yield* catalog.find(orgId, name)
    if (Option.isNone(match)) return Option.getOrUndefined(yield* extension(caller, path)) ?? (yield* modelNotFound(name ?? path))
    const model = match.value
    const own = model.orgSlug === orgSlug
    return JSON.stringify(catalogModel(model, own ? orgSlug : platformName, own ? zeroPrices : model.prices, engineWire(model.runtime)))
  })

  return Effect.fnUntraced(function* (caller: Caller, path: string): Effect.fn.Return<string, Refusal> {
    const { orgId, scopes } = caller
    if (!scopes.has("models:read") && !scopes.has("inference:write")) return yield* missingScope("models:read")
    if (unserved.has(path)) return yield* unsupportedEndpoint(`No model supports ${path}.`, "model")
    return yield* turns.take(orgId, query(caller, path))
  })
})
