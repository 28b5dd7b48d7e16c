import { createHash } from "node:crypto"
import { Api } from "@seatrial/api"
import { indexPolicy, prefersOver, serviceIndex } from "@seatrial/domain"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiSwagger, OpenApi } from "effect/http-api"
import { namesTag, tagOf } from "./entityTag.ts"

/** Seconds that a client may keep the documents without asking again. */
const maxAge = 300

/** A document as ready bytes: its entity tag and what every answer with it says. */
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

/** Lets the page run its own scripts, by their hashes, and ask this server; nothing else, from nowhere else. */
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

/** Effect's page with Swagger UI and the document inside. Both come from installed packages; its assets are large, so they are loaded when somebody asks for them. */
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

/** The index in both of its forms. */
const answerIndex = () => {
  const { html, json } = serviceIndex("server")
  const bytesOf = (text: string) => new TextEncoder().encode(text)
  const page = answer(
    documentOf(bytesOf(html), "text/html; charset=utf-8", { vary: "Accept", "content-security-policy": indexPolicy, "referrer-policy": "no-referrer" })
  )
  const document = answer(documentOf(bytesOf(json), "application/json", { vary: "Accept" }))
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => (wantsHtml(headers.accept) ? page : document))
}

/** `/`, `/openapi.json` and `/docs`: public, and ready but for the first sight of the page. */
export const layerDocuments = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const interfaceDocument = documentOf(new TextEncoder().encode(JSON.stringify(OpenApi.fromApi(Api))), "application/json")
    yield* router.add("GET", "/openapi.json", answer(interfaceDocument))
    yield* router.add("GET", "/", answerIndex())
    const page = yield* Effect.cached(renderPage)
    yield* router.add("GET", "/docs", Effect.flatMap(page, answer))
  })
)
