import { createHash } from "node:crypto"
import { Api } from "@seatrial/api"
import { indexPolicy, prefersOver, serviceIndex } from "@seatrial/domain"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiSwagger, OpenApi } from "effect/http-api"
import { namesTag, tagOf } from "./entityTag.ts"

/** Seconds that clients may cache the documents. */
const maxAge = 300

/** An encoded document and the headers of its responses. */
interface Document {
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>> & { readonly etag: string }
}

const documentOf = (bytes: Uint8Array, contentType: string, headers: Readonly<Record<string, string>> = {}): Document => ({
  bytes,
  contentType,
  headers: {
    etag: tagOf(bytes),
    "cache-control": `public, max-age=${maxAge}`,
    "x-content-type-options": "nosniff",
    ...headers
  }
})

const answer = ({ bytes, contentType, headers }: Document) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
    namesTag(request.headers["if-none-match"], headers.etag)
      ? HttpServerResponse.empty({ status: 304, headers })
      : HttpServerResponse.uint8Array(bytes, { contentType, headers })
  )

const inlineScript = /<script>([\s\S]*?)<\/script>/g

/**
 * A content security policy: the page may run its own inline scripts, identified by hash, and call this server.
 * Everything else is blocked.
 */
const policyOf = (html: string): string =>
  [
    "default-src 'none'",
    `script-src ${[...html.matchAll(inlineScript)].map(([, script = ""]) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`).join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

/** Effect's Swagger UI page with the document inlined. Its assets are large, so it is rendered on the first request. */
const renderPage = Effect.scoped(
  Effect.gen(function* () {
    const page = yield* HttpRouter.toHttpEffect(HttpApiSwagger.layer(Api, { path: "/docs" }))
    const { body } = yield* page
    if (body._tag !== "Uint8Array") return yield* Effect.die(new Error("The page has no bytes."))
    const html = new TextDecoder().decode(body.body)
    return documentOf(body.body, "text/html; charset=utf-8", { "content-security-policy": policyOf(html), "referrer-policy": "no-referrer" })
  })
).pipe(Effect.orDie)

const wantsHtml = prefersOver("text/html", "application/json")

/** The index as JSON and as HTML. */
const answerIndex = () => {
  const { html, json } = serviceIndex("server")
  const bytesOf = (text: string) => new TextEncoder().encode(text)
  const page = answer(
    documentOf(bytesOf(html), "text/html; charset=utf-8", { vary: "Accept", "content-security-policy": indexPolicy, "referrer-policy": "no-referrer" })
  )
  const document = answer(documentOf(bytesOf(json), "application/json", { vary: "Accept" }))
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => (wantsHtml(headers.accept) ? page : document))
}

/** The public documents: `/`, `/openapi.json` and `/docs`. */
export const layerDocuments = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const interfaceDocument = documentOf(new TextEncoder().encode(JSON.stringify(OpenApi.fromApi(Api))), "application/json")
    yield* router.add("GET", "/openapi.json", answer(interfaceDocument))
    yield* router.add("GET", "/", answerIndex())
    const page = yield* Effect.cached(renderPage)
    yield* router.add("GET", "/docs", Effect.flatMap(page, answer))
  })
)
