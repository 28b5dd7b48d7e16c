import { Result } from "effect"
import { Unreadable } from "../src/failures.ts"
import type { Sink } from "../src/safetensors.ts"

/** Passes bytes to a sink in pieces of these lengths and then the rest. Rethrows errors other than `Unreadable`. */
export const feed = <A>(sink: Sink<A>, bytes: Uint8Array, pieces: ReadonlyArray<number> = []): Result.Result<A, Unreadable> => {
  try {
    let at = 0
    for (const length of [...pieces, bytes.length]) {
      sink.push(bytes.subarray(at, at + length))
      at += length
    }
    return Result.succeed(sink.end())
  } catch (error) {
    if (error instanceof Unreadable) return Result.fail(error)
    throw error
  }
}
