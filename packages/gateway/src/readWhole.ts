import type { IncomingMessage } from "node:http"
import { Effect } from "effect"

/** Reads a whole answer of at most `limit` bytes; null where it breaks off, is larger, takes longer than `timeout` milliseconds, or `signal` is aborted. */
export const readWhole = (upstream: IncomingMessage, limit: number, timeout: number, signal: AbortSignal): Effect.Effect<Buffer | null> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    const settle = (body: Buffer | null) => {
      clearTimeout(timer)
      signal.removeEventListener("abort", fail)
      upstream.off("data", onData).off("end", onEnd).off("close", fail)
      if (body === null) upstream.destroy()
      resume(Effect.succeed(body))
    }
    const fail = () => settle(null)
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > limit) fail()
      else chunks.push(chunk)
    }
    const onEnd = () => settle(upstream.complete ? Buffer.concat(chunks) : null)
    const timer = setTimeout(fail, timeout)
    if (signal.aborted) return fail()
    signal.addEventListener("abort", fail)
    upstream.on("data", onData).on("end", onEnd).on("close", fail)
    return Effect.sync(fail)
  })
