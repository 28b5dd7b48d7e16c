import { type IncomingMessage, request as requestPlain } from "node:http"
import { request as requestTls } from "node:https"
import type { LookupFunction } from "node:net"

const headersOf = ({ rawHeaders }: IncomingMessage): Headers => {
  const headers = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "")
  return headers
}

/** The body as a stream. Canceling it closes the connection. */
const bodyOf = (message: IncomingMessage): ReadableStream<Uint8Array> => {
  const parts: AsyncIterator<Uint8Array> = message[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await parts.next()
      if (done === true) controller.close()
      else controller.enqueue(new Uint8Array(value))
    },
    cancel: () => {
      message.destroy()
    }
  })
}

/**
 * One GET request on a new connection that resolves its host with `lookup`, because `fetch` does not allow control over
 * the address.
 */
export const requestOnce = (url: URL, headers: Headers, signal: AbortSignal, lookup: LookupFunction): Promise<Response> =>
  new Promise((resolve, reject) => {
    const request = url.protocol === "https:" ? requestTls : requestPlain
    request(url, { headers: Object.fromEntries(headers), signal, lookup, agent: false }, (message) => {
      const { statusCode = 0 } = message
      const empty = statusCode === 204 || statusCode === 304
      if (empty) message.resume()
      resolve(new Response(empty ? null : bodyOf(message), { status: statusCode, headers: headersOf(message) }))
    })
      .on("error", reject)
      .end()
  })
