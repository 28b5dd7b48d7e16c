import { Caller } from "@seatrial/api"
import { type CatalogModel, zeroPrices } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import { Catalog, catalogModel, type ServedModel } from "@seatrial/store"
import { Deferred, Effect, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { namesTag, tagOf } from "./entityTag.ts"
import { ServerSettings } from "./ServerSettings.ts"

const listOf = (data: ReadonlyArray<CatalogModel>) => ({ object: "list", data })

const cacheControl = "public, max-age=30"

/**
 * The encoded responses of a catalog. They are built once per change, because the catalog is public and can be
 * requested often.
 */
const responsesOf = (models: ReadonlyArray<ServedModel>, platform: string) => {
  const body = new TextEncoder().encode(JSON.stringify(listOf(models.map((model) => catalogModel(model, platform, model.prices, engineWire(model.runtime))))))
  const headers = { etag: tagOf(body), "cache-control": cacheControl }
  return {
    etag: headers.etag,
    full: HttpServerResponse.uint8Array(body, { contentType: "application/json", headers }),
    unchanged: HttpServerResponse.empty({ status: 304, headers })
  }
}

/**
 * The public catalog. It is served from memory, even while the database is unavailable. A call before the first read
 * waits for it.
 */
export const catalogOperation = Effect.gen(function* () {
  const catalog = yield* Catalog
  const { platformName } = yield* ServerSettings
  const first = yield* Deferred.make<void>()
  let current = responsesOf([], platformName)
  yield* catalog.published.pipe(
    Stream.runForEach((models) => {
      current = responsesOf(models, platformName)
      return Deferred.succeed(first, undefined)
    }),
    Effect.forkScoped
  )

  return Effect.fnUntraced(function* ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) {
    yield* Deferred.await(first)
    const { etag, full, unchanged } = current
    return namesTag(request.headers["if-none-match"], etag) ? unchanged : full
  })
})

/** The served models of the caller's organization. It pays for them by GPU time, so their rates are zero. */
export const ownModelsOperation = Effect.gen(function* () {
  const catalog = yield* Catalog
  return Effect.fnUntraced(function* () {
    const { orgId, orgSlug } = yield* Caller
    const models = yield* catalog.ownedBy(orgId)
    return HttpServerResponse.jsonUnsafe(listOf(models.map((model) => catalogModel(model, orgSlug, zeroPrices, engineWire(model.runtime)))))
  })
})
