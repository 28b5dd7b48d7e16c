import { Readable } from "node:stream"
import type { EngineWire, InferencePath } from "@seatrial/domain"
import { Context, Data, Effect, Layer } from "effect"
import type { Dispatcher } from "undici"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import { EngineExchange, type UnreachableReason } from "./engine/EngineExchange.ts"
import { EnginePools } from "./engine/EnginePools.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import type { Signal } from "./RequestAbort.ts"

/**
 * No answer came. `refused`: no connection. `stale`: a kept connection closed at once, most likely before the engine
 * read the request. `broken`: the connection closed after the engine may have begun to work. `late`: no response head
 * in time. `aborted`: the signal was aborted.
 */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{ readonly reason: UnreachableReason }> {}

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

/** The request for an engine, with only the headers that an engine needs. */
const requestOf = ({ body, method, path, requestId, traceparent }: EngineCall): Dispatcher.DispatchOptions => {
  const headers = ["accept", "application/json, text/event-stream", "x-request-id", requestId]
  let payload: string | Readable | null = body?.() ?? null
  if (payload !== null) headers.push("content-type", "application/json")
  if (payload !== null && payload.length > largeBody) {
    const bytes = Buffer.from(payload)
    headers.push("content-length", String(bytes.length))
    payload = readOnce(bytes)
  }
  if (traceparent !== undefined) headers.push("traceparent", traceparent)
  return { path, method, headers, body: payload }
}

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

      const call = (engineCall: EngineCall) =>
        Effect.callback<EngineAnswer, EngineUnreachable>((resume) => {
          if (engineCall.signal.aborted) return resume(new EngineUnreachable({ reason: "aborted" }))
          const exchange = new EngineExchange(engineCall, {
            answered: (answer) => resume(Effect.succeed(answer)),
            failed: (reason) => resume(new EngineUnreachable({ reason }))
          })
          pools.of(engineCall.url).dispatch(requestOf(engineCall), exchange)
          return Effect.sync(() => exchange.abort())
        })

      return EngineClient.of({ call })
    })
  )
}
