import type { IncomingMessage, ServerResponse } from "node:http"
import { indexPolicy, prefersOver, serviceIndex } from "@seatrial/domain"

const wantsHtml = prefersOver("text/html", "application/json")
const { html, json } = serviceIndex("gateway")

/** Answers `GET /` with what the gateway serves, as JSON or as a page. */
export const answerIndex = ({ headers: { accept } }: IncomingMessage, response: ServerResponse): void => {
  const isPage = wantsHtml(accept)
  const body = isPage ? html : json
  // Cross-origin rules may have added theirs.
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
