import { Worker } from "node:worker_threads"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import { type HashMessage, type HashResult, makeHashReader } from "./HashReader.ts"

/** A file that is hashed while it comes. */
export interface Hashing {
  /** All bytes before `to` are there. */
  readonly advance: (to: number) => void
  /** Lower-case hex, once all of it is there; rejects where the file cannot be read. */
  readonly digest: Promise<string>
  readonly drop: () => void
}

export type HashThread = (path: string, file: RepositoryFile) => Hashing

type Way = (tell: (result: HashResult) => void, broken: (error: Error) => void) => Effect.Effect<(message: HashMessage) => void, never, Scope.Scope>

const inThread: Way = Effect.fnUntraced(function* (tell, broken) {
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(new URL("./hashWorker.ts", import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 } })),
    (worker) => Effect.promise(() => worker.terminate())
  )
  worker.on("message", tell)
  worker.on("error", (error) => broken(error instanceof Error ? error : new Error(String(error))))
  return (message) => worker.postMessage(message)
})

const here: Way = (tell) => Effect.succeed(makeHashReader(tell))

/** Fewer bytes are hashed sooner than a thread starts. */
const worthThread = 32 * 1024 * 1024

/**
 * Hashes files as their commit names them (SHA-256 for those in LFS, else git's blob id), each from its beginning, as far as it is there without a gap. Where there
 * are many bytes in all, it has a thread of its own, which lives as long as the scope.
 */
export const makeHashThread = Effect.fnUntraced(function* (bytes: number): Effect.fn.Return<HashThread, never, Scope.Scope> {
  const waiting = new Map<number, { readonly resolve: (digest: string) => void; readonly reject: (error: Error) => void }>()
  const way = bytes < worthThread ? here : inThread
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
    // Whoever awaits it hears of a failure; until then it is nobody's.
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
