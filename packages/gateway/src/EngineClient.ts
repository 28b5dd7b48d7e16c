import { Agent, type IncomingMessage, request } from "node:http"
import type { InferencePath } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import type { Signal } from "./Departure.ts"
import { GatewayConfig } from "./GatewayConfig.ts"

/**
 * No answer came. `refused`: there was no connection. `stale`: a kept connection turned out closed at once, so that nothing was worked on. `broken`: the connection
 * ended when the engine may have begun the work. `late`: no head within the time. `aborted`: the signal said so.
 */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{ readonly reason: "refused" | "stale" | "broken" | "late" | "aborted" }> {}

export interface EngineCall {
  /** `http://address:port`. */
  readonly url: string
  readonly path: InferencePath | "/health" | "/metrics" | "/ready"
  readonly method: "GET" | "POST"
  readonly body: string | null
  readonly requestId: string
  /** Joins the engine's trace to the request's. */
  readonly traceparent?: string | undefined
  /** Milliseconds until the answer's head. */
  readonly timeout: number
  /** Closes the connection at any time until the answer has been read, which makes the engine stop its work. */
  readonly signal: Signal
}

/** Milliseconds within which a kept connection shows that its other end had closed it before. */
const staleWithin = 1_000

/**
 * Requests to engine pods over kept connections. Only what an engine needs goes out: content type, length, accept, our request id and trace. The answer's body is the
 * caller's to read or destroy.
 */
export class EngineClient extends Context.Service<EngineClient, { readonly call: (call: EngineCall) => Effect.Effect<IncomingMessage, EngineUnreachable> }>()(
  "seatrial/EngineClient"
) {
  static readonly layer = Layer.effect(
    EngineClient,
    Effect.gen(function* () {
      const { connect: connectTimeout } = yield* GatewayConfig
      // Engines close idle connections after 5 s: ours go first, or a reused one races with its end.
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ keepAlive: true, timeout: 4_000, maxSockets: 1_024, maxFreeSockets: 128 })),
        (open) => Effect.sync(() => open.destroy())
      )

      const call = ({ body, method, path, requestId, signal, timeout, traceparent, url }: EngineCall) =>
        Effect.callback<IncomingMessage, EngineUnreachable>((resume) => {
          const fail = (reason: EngineUnreachable["reason"]) => resume(new EngineUnreachable({ reason }))
          if (signal.aborted) return fail("aborted")
          const startedAt = performance.now()
          let connected = false
          let late = false
          let connecting: NodeJS.Timeout | undefined
          const outgoing = request(`${url}${path}`, {
            agent,
            method,
            headers: {
              accept: "application/json, text/event-stream",
              "x-request-id": requestId,
              ...(traceparent === undefined ? {} : { traceparent }),
              ...(body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
            }
          })
          const hangUp = () => {
            outgoing.destroy()
          }
          const forget = () => signal.removeEventListener("abort", hangUp)
          const settled = () => {
            clearTimeout(limit)
            clearTimeout(connecting)
          }
          const limit = setTimeout(() => {
            late = true
            hangUp()
          }, timeout)
          signal.addEventListener("abort", hangUp)
          outgoing.once("socket", (socket) => {
            connected = !socket.connecting
            if (connected) return
            // A process that was busy for so long hears of the connection only after its timers.
            connecting = setTimeout(() => setImmediate(() => (connected ? undefined : hangUp())), connectTimeout)
            socket.once("connect", () => {
              connected = true
              clearTimeout(connecting)
            })
          })
          outgoing.once("response", (incoming) => {
            settled()
            // Whoever reads the answer learns of its end from `close`.
            incoming.on("error", () => {})
            incoming.once("close", forget)
            resume(Effect.succeed(incoming))
          })
          outgoing.on("error", () => {
            settled()
            forget()
            const stale = outgoing.reusedSocket && performance.now() - startedAt < staleWithin
            fail(signal.aborted ? "aborted" : late ? "late" : !connected ? "refused" : stale ? "stale" : "broken")
          })
          outgoing.end(body ?? undefined)
          return Effect.sync(() => {
            settled()
            forget()
            hangUp()
          })
        })

      return EngineClient.of({ call })
    })
  )
}
