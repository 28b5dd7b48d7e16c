import { Worker } from "node:worker_threads"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import { type HashMessage, type HashResult, makeHashReader } from "./HashReader.ts"

/** A file that is hashed while it arrives. */
export interface Hashing {
  /** Reports that all bytes before `to` exist. */
  readonly advance: (to: number) => void
  /** The hash in lower-case hex when the file is complete; rejects if the file cannot be read. */
  readonly digest: Promise<string>
  readonly drop: () => void
}

export type HashThread = (path: string, file: RepositoryFile) => Hashing

type Way = (onResult: (result: HashResult) => void, broken: (error: Error) => void) => Effect.Effect<(message: HashMessage) => void, never, Scope.Scope>

const inThread: Way = Effect.fnUntraced(function* (onResult, broken) {
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(new URL("./hashWorker.ts", import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 } })),
    (worker) => Effect.promise(() => worker.terminate())
  )
  worker.on("message", onResult)
  worker.on("error", (error) => broken(error instanceof Error ? error : new Error(String(error))))
  return (message) => worker.postMessage(message)
})

const inProcess: Way = (onResult) => Effect.succeed(makeHashReader(onResult))

/** Below this size, hashing takes less time than starting a thread. */
const worthThread = 32 * 1024 * 1024

/**
 * Hashes files in the form of their commit (SHA-256 for LFS files, otherwise git's blob id), from the start as far as
 * there is no gap. For many bytes it uses a thread for the lifetime of the scope.
 */
export const makeHashThread = Effect.fnUntraced(function* (bytes: number): Effect.fn.Return<HashThread, never, Scope.Scope> {
  const waiting = new Map<number, { readonly resolve: (digest: string) => void; readonly reject: (error: Error) => void }>()
  const way = bytes < worthThread ? inProcess : inThread
  const send = yield* way(
    (result) => {
      const waiter = waiting.get(result.id)
      waiting.delete(result.id)
      if ("digest" in result) waiter?.resolve(result.digest)
      else waiter?.reject(new Error(result.error))
    },
    (error) => {
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    }
  )
  let next = 0
  return (path, file) => {
    const id = next++
    const digest = new Promise<string>((resolve, reject) => waiting.set(id, { resolve, reject }))
    // A failure is reported to the code that awaits the digest. Until then it must not be an unhandled rejection.
    digest.catch(() => undefined)
    const lfs = file.sha256 !== null
    send({ kind: "open", id, path, algorithm: lfs ? "sha256" : "sha1", prefix: lfs ? "" : `blob ${file.size}\0`, size: file.size })
    return {
      advance: (to) => send({ kind: "advance", id, to }),
      digest,
      drop: () => {
        waiting.delete(id)
        send({ kind: "drop", id })
      }
    }
  }
})
