import { Caller } from "@seatrial/api"
import { type CatalogModel, earliestCapabilities, microsToDollars, type Prices, publicCapabilities, storedCapabilities, zeroPrices } from "@seatrial/domain"
import { Catalog, type ServedModel } from "@seatrial/store"
import { Deferred, Effect, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { namesTag, tagOf } from "./entityTag.ts"
import { ServerSettings } from "./ServerSettings.ts"

const stored = ({ capabilities }: ServedModel) => storedCapabilities(capabilities, () => earliestCapabilities)

/** A served model as catalogs list it. What was not kept with its revision yet is as the first versions served it, and as the gateway takes it. */
export const catalogModel = (served: ServedModel, ownedBy: string, prices: Prices): CatalogModel => ({
  id: served.model,
  object: "model",
  created: Math.floor(served.createdAt / 1000),
  owned_by: ownedBy,
  display_name: served.displayName,
  hf_repo: served.hfRepo,
  hf_revision: served.hfRevision,
  config_revision: served.revisionId,
  dtype: served.dtype,
  quantization: served.quantization,
  max_model_len: served.maxModelLen,
  context_window: served.maxModelLen,
  context_length: served.maxModelLen,
  engine: served.runtime,
  engine_version: served.engineVersion,
  price_in_micros_per_mtok: prices.input_micros_per_mtok,
  price_out_micros_per_mtok: prices.output_micros_per_mtok,
  price_cache_read_micros_per_mtok: prices.cache_read_micros_per_mtok,
  price_cache_write_micros_per_mtok: prices.cache_write_micros_per_mtok,
  pricing: { input: microsToDollars(prices.input_micros_per_mtok), output: microsToDollars(prices.output_micros_per_mtok) },
  status: served.status,
  ...(served.model.includes("/") ? stored(served) : publicCapabilities(served.runtime, stored(served))),
  capabilities_verified_at: served.verifiedAt === null ? null : Math.floor(served.verifiedAt / 1000)
})

const listOf = (data: ReadonlyArray<CatalogModel>) => ({ object: "list", data })

const cacheControl = "public, max-age=30"

/** A catalog as it goes out: made once for each change, since anybody may ask for it. */
const answersOf = (models: ReadonlyArray<ServedModel>, platform: string) => {
  const body = new TextEncoder().encode(JSON.stringify(listOf(models.map((model) => catalogModel(model, platform, model.prices)))))
  const headers = { etag: tagOf(body), "cache-control": cacheControl }
  return {
    etag: headers.etag,
    whole: HttpServerResponse.uint8Array(body, { contentType: "application/json", headers }),
    unchanged: HttpServerResponse.empty({ status: 304, headers })
  }
}

/** The public catalog: answered from memory, also while the database is away. A call that comes before the first reading waits for it. */
export const catalogOperation = Effect.gen(function* () {
  const catalog = yield* Catalog
  const { platformName } = yield* ServerSettings
  const first = yield* Deferred.make<void>()
  let current = answersOf([], platformName)
  yield* catalog.published.pipe(
    Stream.runForEach((models) => {
      current = answersOf(models, platformName)
      return Deferred.succeed(first, undefined)
    }),
    Effect.forkScoped
  )

  return Effect.fnUntraced(function* ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) {
    yield* Deferred.await(first)
    const { etag, unchanged, whole } = current
    return namesTag(request.headers["if-none-match"], etag) ? unchanged : whole
  })
})

/** The served models of the caller's organisation, which it pays for by GPU time: so their rates are zero. */
export const ownModelsOperation = Effect.gen(function* () {
  const catalog = yield* Catalog
  return Effect.fnUntraced(function* () {
    const { orgId, orgSlug } = yield* Caller
    const models = yield* catalog.ownedBy(orgId)
    return HttpServerResponse.jsonUnsafe(listOf(models.map((model) => catalogModel(model, orgSlug, zeroPrices))))
  })
})
