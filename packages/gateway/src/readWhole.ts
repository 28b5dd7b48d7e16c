import { Effect } from "effect"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import type { Signal } from "./RequestAbort.ts"

/** Why an answer was not read. */
export type UnreadAnswer = "late" | "large" | "full" | "broken"

/** Bytes that an answer may have without reserved memory. */
const smallAnswer = 64 * 1024

const unlimited = () => true

/**
 * Reads an answer of at most `limit` bytes. `late`: it took more than `timeout` milliseconds. `large`: it is
 * larger. `full`: `reserve` did not grant the memory for the bytes of a larger answer than 64 KiB. `broken`: it broke
 * off, or `signal` was aborted.
 */
export const readWhole = (
  upstream: EngineAnswer,
  limit: number,
  timeout: number,
  signal: Signal,
  reserve: (bytes: number) => boolean = unlimited
): Effect.Effect<Buffer | UnreadAnswer> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    let reserved = smallAnswer
    const hasRoom = () => {
      if (length <= reserved) return true
      // The first 64 KiB count too, once the answer has more.
      const granted = reserve(reserved === smallAnswer ? length : length - reserved)
      reserved = length
      return granted
    }
    const settle = (body: Buffer | UnreadAnswer) => {
      clearTimeout(timer)
      signal.removeEventListener("abort", fail)
      upstream.off("data", onData).off("end", onEnd).off("close", fail)
      if (typeof body === "string") upstream.destroy()
      resume(Effect.succeed(body))
    }
    const fail = () => settle("broken")
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > limit) settle("large")
      else if (!hasRoom()) settle("full")
      else chunks.push(chunk)
    }
    const onEnd = () => settle(upstream.complete ? Buffer.concat(chunks) : "broken")
    const timer = setTimeout(() => settle("late"), Math.ceil(timeout))
    if (signal.aborted || upstream.destroyed) return fail()
    signal.addEventListener("abort", fail)
    upstream.on("data", onData).on("end", onEnd).on("close", fail).resume()
    return Effect.sync(fail)
  })
