import { Agent, type IncomingMessage, request } from "node:http"
import { Context, Data, Effect, Layer } from "effect"
import type { Endpoint } from "./requestBody.ts"

/** No usable answer came: refused, reset, or too late. `worked`: whether the engine may have begun the work. */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{ readonly worked: boolean; readonly timedOut: boolean }> {}

export interface EngineCall {
  /** `http://address:port`. */
  readonly url: string
  readonly path: Endpoint | "/health"
  readonly method: "GET" | "POST"
  readonly body: string | null
  readonly requestId: string
  /** Milliseconds until the answer's head. */
  readonly timeout: number
}

/**
 * Requests to engine pods over kept connections. Only what an engine needs goes out: content type, length, accept and our request id.
 * The answer's body is the caller's to read or destroy; interruption closes the connection, which makes the engine stop its work.
 */
export class EngineClient extends Context.Service<EngineClient, { readonly call: (call: EngineCall) => Effect.Effect<IncomingMessage, EngineUnreachable> }>()(
  "seatrial/EngineClient"
) {
  static readonly layer = Layer.effect(
    EngineClient,
    Effect.gen(function* () {
      // Engines close idle connections after 5 s: ours go first, or a reused one races with its end.
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ keepAlive: true, timeout: 4_000, maxSockets: 1_024, maxFreeSockets: 128 })),
        (open) => Effect.sync(() => open.destroy())
      )

      const call = ({ body, method, path, requestId, timeout, url }: EngineCall) =>
        Effect.callback<IncomingMessage, EngineUnreachable>((resume, signal) => {
          let sent = false
          let timedOut = false
          const outgoing = request(`${url}${path}`, {
            agent,
            method,
            headers: {
              accept: "application/json, text/event-stream",
              "x-request-id": requestId,
              ...(body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
            }
          })
          const limit = setTimeout(() => {
            timedOut = true
            outgoing.destroy()
          }, timeout)
          signal.addEventListener("abort", () => outgoing.destroy(), { once: true })
          outgoing.once("response", (incoming) => {
            clearTimeout(limit)
            resume(Effect.succeed(incoming))
          })
          outgoing.once("finish", () => {
            sent = true
          })
          // A kept connection that the engine closed meanwhile fails before any byte of an answer: nothing was worked on.
          outgoing.once("error", (cause: NodeJS.ErrnoException) => {
            clearTimeout(limit)
            resume(new EngineUnreachable({ worked: sent && cause.code !== "ECONNREFUSED" && !outgoing.reusedSocket, timedOut }))
          })
          outgoing.end(body ?? undefined)
        })

      return EngineClient.of({ call })
    })
  )
}
