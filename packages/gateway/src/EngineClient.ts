import { Readable } from "node:stream"
import type { InferencePath } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import { type Dispatcher, errors } from "undici"
import { EngineAnswer } from "./engine/EngineAnswer.ts"
import { EnginePools } from "./engine/EnginePools.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import type { Signal } from "./RequestAbort.ts"

/**
 * No answer came. `refused`: there was no connection. `stale`: a kept connection ended at once, most likely before anything was worked on. `broken`: the connection
 * ended when the engine may have begun the work. `late`: no head within the time. `aborted`: the signal said so.
 */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{ readonly reason: "refused" | "stale" | "broken" | "late" | "aborted" }> {}

export interface EngineCall {
  /** `http://address:port`. */
  readonly url: string
  readonly path: InferencePath | "/health" | "/metrics" | "/ready" | "/tokenize"
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

/** Milliseconds within which a kept connection shows that its other end had closed it before. */
const staleWithin = 1_000

/** Characters of a body from which it is not kept: the client keeps one that it is given whole until the answer has ended, which for a stream may take an hour. */
const largeBody = 4_096

/** A body that nobody holds once it was read. */
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

/** Made once: a stack for each hang-up costs more than the hang-up. */
const hungUp = new Error("The gateway hung up.")

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
        (open) => Effect.promise(() => open.close())
      )

      const call = ({ body, method, path, requestId, signal, timeout, traceparent, url }: EngineCall) =>
        Effect.callback<EngineAnswer, EngineUnreachable>((resume) => {
          if (signal.aborted) return resume(new EngineUnreachable({ reason: "aborted" }))
          const startedAt = performance.now()
          /** Known from when the request goes out, which is when there is a connection. */
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
                // Most likely a kept connection that was closed before: an engine that this request ended at once looks the same.
                const kept = error instanceof errors.SocketError && (error.socket?.bytesRead ?? 0) > 0
                fail(control === undefined ? "refused" : kept && performance.now() - startedAt < staleWithin ? "stale" : "broken")
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
