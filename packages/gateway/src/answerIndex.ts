import type { IncomingMessage, ServerResponse } from "node:http"
import { indexPolicy, prefersOver, serviceIndex } from "@seatrial/domain"

const wantsHtml = prefersOver("text/html", "application/json")
const { html, json } = serviceIndex("gateway")

/** Answers `GET /` with an index of the gateway's endpoints, as JSON or HTML. */
export const answerIndex = ({ headers: { accept } }: IncomingMessage, response: ServerResponse): void => {
  const isPage = wantsHtml(accept)
  const body = isPage ? html : json
  // Appended, because cross-origin handling may have set `vary` already.
  response.appendHeader("vary", "Accept")
  response
    .writeHead(200, {
      "content-type": isPage ? "text/html; charset=utf-8" : "application/json",
      "content-length": Buffer.byteLength(body),
      "cache-control": "public, max-age=300",
      "content-security-policy": indexPolicy,
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff"
    })
    .end(body)
}
