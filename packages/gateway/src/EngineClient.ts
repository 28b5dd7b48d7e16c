import type { InferencePath } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import type { Signal } from "./Departure.ts"
import { ConnectionPool } from "./engine/ConnectionPool.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
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
  /** Milliseconds until the answer's head. */
  readonly timeout: number
  /** Closes the connection at any time until the answer has been read, which makes the engine stop its work. */
  readonly signal: Signal
}

/** Milliseconds within which a kept connection shows that its other end had closed it before. */
const staleWithin = 1_000

/** What goes before the id of the request, of each path of each engine. */
const headOf = (method: string, path: string, host: string) =>
  `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\naccept: application/json, text/event-stream\r\nconnection: keep-alive\r\nx-request-id: `

/**
 * Requests to engine pods over kept connections. Only what an engine needs goes out: content type, length, accept and our request id. The answer's body is the
 * caller's to read or destroy.
 */
export class EngineClient extends Context.Service<EngineClient, { readonly call: (call: EngineCall) => Effect.Effect<EngineAnswer, EngineUnreachable> }>()(
  "seatrial/EngineClient"
) {
  static readonly layer = Layer.effect(
    EngineClient,
    Effect.gen(function* () {
      const { connect: connectTimeout } = yield* GatewayConfig
      const pool = yield* Effect.acquireRelease(
        Effect.sync(() => new ConnectionPool()),
        (open) => Effect.sync(() => open.close())
      )

      const call = ({ body, method, path, requestId, signal, timeout, url }: EngineCall) =>
        Effect.callback<EngineAnswer, EngineUnreachable>((resume) => {
          const fail = (reason: EngineUnreachable["reason"]) => resume(new EngineUnreachable({ reason }))
          if (signal.aborted) return fail("aborted")
          const origin = pool.of(url)
          const connection = origin.take()
          if (connection === undefined) return fail("refused")
          const startedAt = performance.now()
          const { isConnected: reused } = connection
          let late = false
          let connecting: NodeJS.Timeout | undefined
          let answer: EngineAnswer | undefined
          const hangUp = () => (answer ?? connection).destroy()
          const settled = () => {
            clearTimeout(limit)
            clearTimeout(connecting)
          }
          const limit = setTimeout(() => {
            late = true
            hangUp()
          }, Math.ceil(timeout))
          // A process that was busy for so long hears of the connection only after its timers.
          if (!reused) connecting = setTimeout(() => setImmediate(() => (connection.isConnected ? undefined : hangUp())), connectTimeout)
          signal.addEventListener("abort", hangUp)
          const length = body === null ? 0 : Buffer.byteLength(body)
          const head = headOf(method, path, origin.name) + requestId
          const request = body === null ? `${head}\r\n\r\n` : `${head}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`
          // Characters of one byte each need no encoding.
          connection.send(request, body === null || length === body.length ? "latin1" : "utf8", {
            connected: () => clearTimeout(connecting),
            answered: (incoming) => {
              answer = incoming
              settled()
              incoming.once("close", () => signal.removeEventListener("abort", hangUp))
              resume(Effect.succeed(incoming))
            },
            lost: () => {
              settled()
              signal.removeEventListener("abort", hangUp)
              const stale = reused && performance.now() - startedAt < staleWithin
              fail(signal.aborted ? "aborted" : late ? "late" : !connection.isConnected ? "refused" : stale ? "stale" : "broken")
            }
          })
          return Effect.sync(() => {
            settled()
            signal.removeEventListener("abort", hangUp)
            hangUp()
          })
        })

      return EngineClient.of({ call })
    })
  )
}
