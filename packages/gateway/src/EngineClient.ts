import { Readable } from "node:stream"
import type { EngineWire, InferencePath } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import { type Dispatcher, errors } from "undici"
import { EngineAnswer } from "./engine/EngineAnswer.ts"
import { EnginePools } from "./engine/EnginePools.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import type { Signal } from "./RequestAbort.ts"

/**
 * No answer came. `refused`: no connection. `stale`: a kept connection closed at once, most likely before the engine
 * read the request. `broken`: the connection closed after the engine may have begun to work. `late`: no response head
 * in time. `aborted`: the signal was aborted.
 */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{ readonly reason: "refused" | "stale" | "broken" | "late" | "aborted" }> {}

export interface EngineCall {
  /** `http://address:port`. */
  readonly url: string
  readonly path: InferencePath | EngineWire["livenessPath"] | "/metrics" | "/tokenize"
  readonly method: "GET" | "POST"
  /** Called when the request is sent; the client does not keep the result. */
  readonly body: (() => string) | null
  readonly requestId: string
  /** Makes the engine's trace a child of the request's. */
  readonly traceparent?: string | undefined
  /** Milliseconds until the response head. */
  readonly timeout: number
  /** Called when there is a connection and the request is sent on it. */
  readonly onSent?: () => void
  /** Until the answer has been read, aborting closes the connection, which stops the engine's work. */
  readonly signal: Signal
}

/** Milliseconds in which a kept connection fails if the other end had closed it before. */
const staleWithin = 1_000

/**
 * Characters of a body from which it is streamed: undici keeps a string body until the answer has ended, which may take
 * an hour for a stream.
 */
const largeBody = 4_096

/** A body that is released once it was read. */
const readOnce = (bytes: Buffer): Readable => {
  let left: Buffer | null = bytes
  return new Readable({
    highWaterMark: bytes.length,
    read() {
      this.push(left)
      left = null
    }
  })
}

/** Created once: a stack trace for each abort costs more than the abort itself. */
const hungUp = new Error("The gateway hung up.")

/**
 * Sends requests to engine pods over kept connections. Only headers that an engine needs are sent: content type,
 * length, accept, request ID and trace. The caller must read or destroy the answer's body.
 */
export class EngineClient extends Context.Service<EngineClient, { readonly call: (call: EngineCall) => Effect.Effect<EngineAnswer, EngineUnreachable> }>()(
  "seatrial/EngineClient"
) {
  static readonly layer = Layer.effect(
    EngineClient,
    Effect.gen(function* () {
      const { connectMillis: connectTimeout } = yield* GatewayConfig
      const pools = yield* Effect.acquireRelease(
        Effect.sync(() => new EnginePools(connectTimeout)),
        (open) => Effect.promise(() => open.close())
      )

      const call = ({ body, method, onSent, path, requestId, signal, timeout, traceparent, url }: EngineCall) =>
        Effect.callback<EngineAnswer, EngineUnreachable>((resume) => {
          if (signal.aborted) return resume(new EngineUnreachable({ reason: "aborted" }))
          const startedAt = performance.now()
          /** Set when the request is sent, which requires a connection. */
          let control: Dispatcher.DispatchController | undefined
          let answer: EngineAnswer | undefined
          let over = false
          const settled = () => {
            clearTimeout(limit)
            signal.removeEventListener("abort", leave)
          }
          const fail = (reason: EngineUnreachable["reason"]) => {
            if (over) return
            over = true
            settled()
            resume(new EngineUnreachable({ reason }))
          }
          const hangUp = () => control?.abort(hungUp)
          const leave = () => {
            if (answer !== undefined) return answer.destroy()
            fail("aborted")
            hangUp()
          }
          const limit = setTimeout(
            () => {
              fail("late")
              hangUp()
            },
            Math.max(1, Math.ceil(timeout))
          )
          signal.addEventListener("abort", leave)
          const headers = ["accept", "application/json, text/event-stream", "x-request-id", requestId]
          let payload: string | Readable | null = body?.() ?? null
          if (payload !== null) headers.push("content-type", "application/json")
          if (payload !== null && payload.length > largeBody) {
            const bytes = Buffer.from(payload)
            headers.push("content-length", String(bytes.length))
            payload = readOnce(bytes)
          }
          if (traceparent !== undefined) headers.push("traceparent", traceparent)
          pools.of(url).dispatch(
            { path, method, headers, body: payload },
            {
              onRequestStart: (controller) => {
                control = controller
                if (over) hangUp()
                else onSent?.()
              },
              onResponseStart: (controller, status) => {
                if (over || status < 200) return
                over = true
                clearTimeout(limit)
                answer = new EngineAnswer(status, { pause: () => controller.pause(), resume: () => controller.resume(), hangUp })
                answer.once("close", () => signal.removeEventListener("abort", leave))
                resume(Effect.succeed(answer))
              },
              onResponseData: (_, chunk) => answer?.push(chunk),
              onResponseEnd: () => answer?.finish(),
              onResponseError: (_, error) => {
                if (answer !== undefined) return answer.fail()
                // Most likely the engine had closed the kept connection before. A request that crashed the engine at
                // once looks the same.
                const isReused = error instanceof errors.SocketError && (error.socket?.bytesRead ?? 0) > 0
                fail(control === undefined ? "refused" : isReused && performance.now() - startedAt < staleWithin ? "stale" : "broken")
              }
            }
          )
          return Effect.sync(() => {
            fail("aborted")
            hangUp()
          })
        })

      return EngineClient.of({ call })
    })
  )
}
