import { rm, stat } from "node:fs/promises"
import { join } from "node:path"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect, Fiber, type Scope } from "effect"
import { type HubAnswer, HubUnavailable, type StoreFull } from "../failures.ts"
import { type FileSource, fetchChunk } from "./fetchChunk.ts"
import { type HashThread, makeHashThread } from "./HashThread.ts"
import { onDisk } from "./onDisk.ts"
import { journalOf, openPart, type PartFile } from "./PartFile.ts"
import type { Claim } from "./PartialDirectory.ts"
import { makeRangeConnection } from "./RangeConnection.ts"

interface DownloadOptions {
  readonly source: FileSource
  readonly files: ReadonlyArray<RepositoryFile>
  readonly claim: Claim
  /** Called with the number of new bytes, or a negative number of bytes that must be downloaded again. */
  readonly onBytes: (bytes: number) => void
}

/** Whether the file exists under its own name, which it gets after its verification. */
const isVerified = (target: string, { size }: RepositoryFile) =>
  onDisk(async () => {
    const stats = await stat(target).catch(() => null)
    if (stats === null || !stats.isFile() || stats.size !== size) return false
    await rm(journalOf(target), { force: true })
    return true
  })

/**
 * Downloads the missing parts of the files over all connections, chunk by chunk in order, and returns the files that
 * differ from the commit.
 */
const pass = Effect.fnUntraced(function* ({ claim, onBytes, source }: DownloadOptions, files: ReadonlyArray<RepositoryFile>, hash: HashThread) {
  const { chunkBytes, concurrency } = source.settings
  const parts: Array<PartFile> = []
  for (const file of files) {
    const part = yield* openPart({ file, target: join(claim.path, file.path), chunkBytes, hash })
    parts.push(part)
    const missing = part.missing.reduce((sum, chunk) => sum + Math.min(chunkBytes, file.size - chunk * chunkBytes), 0)
    onBytes(file.size - missing)
  }
  const scope = yield* Effect.scope
  const finishing: Array<Fiber.Fiber<RepositoryFile | null, HubUnavailable | StoreFull>> = []
  // No further chunk of a file is requested after the hub's file turned out to differ. It is given up when the other
  // chunks have arrived.
  const finish = (part: PartFile) =>
    Effect.map(
      Effect.forkIn(
        Effect.map(part.finish, (matches) => (matches ? null : part.file)),
        scope
      ),
      (fiber) => finishing.push(fiber)
    )
  for (const part of parts) if (part.missing.length === 0) yield* finish(part)

  const queue = parts.flatMap((part) => part.missing.map((chunk) => ({ chunk, part })))
  let next = 0
  const connection = Effect.gen(function* () {
    const connection = yield* Effect.acquireRelease(Effect.sync(makeRangeConnection), (connection) =>
      Effect.sync(() => connection.close(new HubUnavailable({ message: "The download was stopped." })))
    )
    for (let task = queue[next++]; task !== undefined; task = queue[next++]) {
      const { chunk, part } = task
      const from = chunk * chunkBytes
      yield* fetchChunk({ connection, source, part, from, end: Math.min(from + chunkBytes, part.file.size), onBytes, isHeld: claim.isHeld })
      if (!part.differs && (yield* part.record(chunk))) yield* finish(part)
    }
  }).pipe(Effect.scoped)
  yield* Effect.all(
    Array.from({ length: Math.min(concurrency, queue.length) }, () => connection),
    { concurrency: "unbounded", discard: true }
  )
  for (const part of parts) if (part.differs) yield* finish(part)
  const differing = (yield* Effect.forEach(finishing, Fiber.join)).filter((file) => file !== null)
  for (const { size } of differing) onBytes(-size)
  return differing
}, Effect.scoped)

/** Downloads and verifies the files. Returns those that differ from the commit after two downloads. */
export const downloadFiles = Effect.fnUntraced(function* (
  options: DownloadOptions
): Effect.fn.Return<ReadonlyArray<RepositoryFile>, HubAnswer | HubUnavailable | StoreFull, Scope.Scope> {
  const { claim, files, onBytes } = options
  const missing: Array<RepositoryFile> = []
  for (const file of files) {
    if (yield* isVerified(join(claim.path, file.path), file)) onBytes(file.size)
    else missing.push(file)
  }
  if (missing.length === 0) return []
  const hash = yield* makeHashThread(missing.reduce((sum, { size }) => sum + size, 0))
  const differing = yield* pass(options, missing, hash)
  return differing.length === 0 ? [] : yield* pass(options, differing, hash)
})
