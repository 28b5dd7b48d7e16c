import type { IncomingMessage } from "node:http"
import { request } from "node:https"
import type { Socket } from "node:net"
import { Effect } from "effect"

/** The answer of a host. */
export type Downloaded =
  | { readonly _tag: "Bytes"; readonly bytes: Buffer }
  /** Longer than the limit; the rest was not read. */
  | { readonly _tag: "Long" }
  | { readonly _tag: "Moved"; readonly location: string }
  | { readonly _tag: "Failed" }

const moved = new Set([301, 302, 303, 307, 308])

export interface DownloadOptions {
  readonly url: URL
  /** Opens a connection to an allowed address. */
  readonly connect: () => Socket
  /** Milliseconds until the connection must be open, including TLS. */
  readonly connectTimeout: number
  /** Bytes. */
  readonly limit: number
}

/**
 * Sends one GET on a new connection, without cookies, credentials or compression. The connection is closed after the
 * answer, or if the effect is interrupted.
 */
export const download = ({ connect, connectTimeout, limit, url }: DownloadOptions): Effect.Effect<Downloaded> =>
  Effect.callback((resume) => {
    const outgoing = request(url, {
      method: "GET",
      createConnection: connect,
      headers: { host: url.host, accept: "image/png, image/jpeg", "accept-encoding": "identity", "user-agent": "seatrial" }
    })
    const settle = (result: Downloaded) => {
      clearTimeout(connecting)
      resume(Effect.succeed(result))
      outgoing.destroy()
    }
    const fail = () => settle({ _tag: "Failed" })
    const connecting = setTimeout(fail, connectTimeout)
    const read = (incoming: IncomingMessage) => {
      const { headers, statusCode = 0 } = incoming
      incoming.on("error", fail)
      if (moved.has(statusCode) && headers.location !== undefined) return settle({ _tag: "Moved", location: headers.location })
      if (statusCode !== 200 || (headers["content-encoding"] ?? "identity") !== "identity") return fail()
      if (Number(headers["content-length"] ?? 0) > limit) return settle({ _tag: "Long" })
      const chunks: Array<Buffer> = []
      let length = 0
      incoming.on("data", (chunk: Buffer) => {
        length += chunk.length
        if (length > limit) settle({ _tag: "Long" })
        else chunks.push(chunk)
      })
      incoming.on("close", () => (incoming.complete ? settle({ _tag: "Bytes", bytes: Buffer.concat(chunks) }) : fail()))
    }
    outgoing.on("socket", (socket) => socket.once("secureConnect", () => clearTimeout(connecting)))
    outgoing.on("response", read)
    outgoing.on("error", fail)
    outgoing.end()
    return Effect.sync(() => {
      clearTimeout(connecting)
      outgoing.destroy()
    })
  })
