import type { InferencePath } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import type { Signal } from "./Departure.ts"
import { EngineAnswer } from "./engine/EngineAnswer.ts"
import type { EngineConnection } from "./engine/EngineConnection.ts"
import { EnginePools } from "./engine/EnginePools.ts"
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
  /** Read when the request goes out, and not kept. */
  readonly body: (() => string) | null
  readonly requestId: string
  /** Joins the engine's trace to the request's. */
  readonly traceparent?: string | undefined
  /** Milliseconds until the answer's head. */
  readonly timeout: number
  /** Closes the connection at any time until the answer has been read, which makes the engine stop its work. */
  readonly signal: Signal
}

/** The request as it goes out. */
const textOf = ({ body, method, path, requestId, traceparent, url }: EngineCall): string => {
  const trace = traceparent === undefined ? "" : `traceparent: ${traceparent}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nhost: ${url.slice("http://".length)}\r\naccept: application/json, text/event-stream\r\nx-request-id: ${requestId}\r\n${trace}`
  if (body === null) return `${head}\r\n`
  const text = body()
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

/**
 * Requests to engine pods over kept connections. Only what an engine needs goes out: content type, length, accept, our request id and trace. The answer's body is the
 * caller's to read or destroy.
 */
export class EngineClient extends Context.Service<EngineClient, { readonly call: (call: EngineCall) => Effect.Effect<EngineAnswer, EngineUnreachable> }>()(
  "seatrial/EngineClient"
) {
  static readonly layer = Layer.effect(
    EngineClient,
    Effect.gen(function* () {
      const { connect: connectTimeout } = yield* GatewayConfig
      const pools = yield* Effect.acquireRelease(
        Effect.sync(() => new EnginePools(connectTimeout)),
        (open) => Effect.sync(() => open.close())
      )

      const call = (asked: EngineCall) =>
        Effect.callback<EngineAnswer, EngineUnreachable>((resume) => {
          const { signal, timeout } = asked
          if (signal.aborted) return resume(new EngineUnreachable({ reason: "aborted" }))
          let answer: EngineAnswer | undefined
          let over = false
          const fail = (reason: EngineUnreachable["reason"]) => {
            if (over) return
            over = true
            clearTimeout(limit)
            signal.removeEventListener("abort", leave)
            resume(new EngineUnreachable({ reason }))
          }
          const give = (reason: EngineUnreachable["reason"]) => {
            fail(reason)
            connection.destroy()
          }
          const leave = () => (answer === undefined ? give("aborted") : answer.destroy())
          const limit = setTimeout(() => give("late"), Math.ceil(timeout))
          signal.addEventListener("abort", leave)
          const connection: EngineConnection = pools.ask(asked.url, {
            request: () => textOf(asked),
            head: (status) => {
              if (over) return
              over = true
              clearTimeout(limit)
              answer = new EngineAnswer(status, {
                pause: () => connection.pause(),
                resume: () => connection.resume(),
                hangUp: () => connection.destroy()
              })
              answer.once("close", () => signal.removeEventListener("abort", leave))
              resume(Effect.succeed(answer))
            },
            data: (bytes) => answer?.push(bytes),
            end: () => answer?.finish(),
            failed: (reason) => (answer === undefined ? fail(reason) : answer.fail())
          })
          return Effect.sync(() => give("aborted"))
        })

      return EngineClient.of({ call })
    })
  )
}
