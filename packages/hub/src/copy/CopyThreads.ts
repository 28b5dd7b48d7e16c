import { availableParallelism } from "node:os"
import { Worker } from "node:worker_threads"
import { Effect, Queue, type Scope } from "effect"
import type { StoreFull } from "../failures.ts"
import { onDisk } from "../fetch/onDisk.ts"
import { type CopyTask, copyFile } from "./copyFile.ts"

export interface CopyRequest {
  readonly id: number
  readonly task: CopyTask
}

export type CopyMessage =
  | { readonly kind: "bytes"; readonly bytes: number }
  | { readonly kind: "done"; readonly id: number; readonly digest: string }
  | { readonly kind: "failed"; readonly id: number; readonly code: string; readonly message: string }

/** Copies or only reads a file, and returns its hash. */
type Copy = (task: CopyTask) => Effect.Effect<string, StoreFull>

export interface CopyThreads {
  readonly copy: Copy
  /** Number of files processed at once. */
  readonly atOnce: number
}

/** Below this size, copying takes less time than starting a thread. */
const worthThreads = 32 * 1024 * 1024
/** More threads do not read a volume faster. */
const most = 4

class DiskError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** One thread that processes one file after another. */
const makeThread = Effect.fnUntraced(function* (onBytes: (bytes: number) => void): Effect.fn.Return<Copy, never, Scope.Scope> {
  const waiting = new Map<number, { readonly resolve: (digest: string) => void; readonly reject: (error: Error) => void }>()
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(new URL("./copyWorker.ts", import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 } })),
    (worker) => Effect.promise(() => worker.terminate())
  )
  worker.on("message", (message: CopyMessage) => {
    if (message.kind === "bytes") return onBytes(message.bytes)
    const waiter = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.kind === "done") waiter?.resolve(message.digest)
    else waiter?.reject(new DiskError(message.code, message.message))
  })
  worker.on("error", (error) => {
    for (const { reject } of waiting.values()) reject(error instanceof Error ? error : new Error(String(error)))
    waiting.clear()
  })
  let next = 0
  return (task) =>
    onDisk(
      () =>
        new Promise((resolve, reject) => {
          const id = next++
          waiting.set(id, { resolve, reject })
          const request: CopyRequest = { id, task }
          worker.postMessage(request)
        })
    )
})

/**
 * Threads that copy files, for the lifetime of the scope; none if there are few bytes in total. `onBytes` is called
 * with bytes as they are read.
 */
export const makeCopyThreads = Effect.fnUntraced(function* (
  files: number,
  bytes: number,
  onBytes: (bytes: number) => void
): Effect.fn.Return<CopyThreads, never, Scope.Scope> {
  if (bytes < worthThreads) return { copy: (task) => onDisk(async () => copyFile(task, onBytes)), atOnce: 1 }
  const atOnce = Math.max(1, Math.min(most, files, availableParallelism()))
  const idle = yield* Queue.unbounded<Copy>()
  for (let count = 0; count < atOnce; count++) Queue.offerUnsafe(idle, yield* makeThread(onBytes))
  const copy: Copy = (task) =>
    Effect.acquireUseRelease(
      Queue.take(idle),
      (thread) => thread(task),
      (thread) => Queue.offer(idle, thread)
    )
  return { copy, atOnce }
})
