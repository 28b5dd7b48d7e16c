import { constants, open, readFile, rename, rm, stat } from "node:fs/promises"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import { expectedHash } from "../contentHash.ts"
import type { HubUnavailable, StoreFull } from "../failures.ts"
import type { Hashing, HashThread } from "./HashThread.ts"
import { isMissing } from "./onDisk.ts"
import { inClaim } from "./PartialDirectory.ts"
import { makePieceWriter, type PieceWriter } from "./PieceWriter.ts"

/** A file that is not whole or not verified yet: `NAME.part`, and in `NAME.chunks` which of its chunks are there. */
export interface PartFile {
  readonly file: RepositoryFile
  /** Chunks that are not there, in order. */
  readonly missing: ReadonlyArray<number>
  /** Where the hub said that the file is, until that is refused. */
  location: URL | null
  /** Whether the hub has another file than the commit. */
  differs: boolean
  readonly write: PieceWriter
  /** Notes that a chunk is there. True: it was the last. */
  readonly record: (chunk: number) => Effect.Effect<boolean, HubUnavailable | StoreFull>
  /** Whether it is the commit's: then it has its name. Else nothing of it is left. */
  readonly finish: Effect.Effect<boolean, HubUnavailable | StoreFull>
}

/** Bytes that are there of a file whose download was begun with chunks of that size. */
export const bytesThere = (chunks: ReadonlySet<number>, chunkBytes: number, { size }: RepositoryFile): number => {
  let bytes = 0
  for (const chunk of chunks) bytes += Math.min(chunkBytes, size - chunk * chunkBytes)
  return bytes
}

/** What the journal says: a first line with the bytes of a chunk, then a line for each that is there. A line that was cut off does not count; a journal of other chunks is none. */
export const readJournal = async (path: string, chunkBytes: number, size: number): Promise<ReadonlySet<number>> => {
  const text = await readFile(path, "utf8").catch((error: unknown) => (isMissing(error) ? "" : Promise.reject(error)))
  const [first, ...lines] = text.slice(0, text.lastIndexOf("\n") + 1).split("\n")
  const count = Math.ceil(size / chunkBytes)
  if (first !== String(chunkBytes)) return new Set()
  return new Set(
    lines
      .filter((line) => /^\d{1,9}$/.test(line))
      .map(Number)
      .filter((chunk) => chunk < count)
  )
}

interface PartOptions {
  readonly file: RepositoryFile
  /** Where the verified file goes. */
  readonly target: string
  readonly chunkBytes: number
  readonly hash: HashThread
}

export const journalOf = (target: string): string => `${target}.chunks`

/** Goes on with what an earlier download left of a file, or begins it. */
export const openPart = Effect.fnUntraced(function* ({
  chunkBytes,
  file,
  hash,
  target
}: PartOptions): Effect.fn.Return<PartFile, HubUnavailable | StoreFull, Scope.Scope> {
  const part = `${target}.part`
  const journalPath = journalOf(target)
  const count = Math.ceil(file.size / chunkBytes)
  const opened = (path: string, flags: number) =>
    Effect.acquireRelease(
      inClaim(() => open(path, flags, 0o644)),
      (handle) => Effect.promise(() => handle.close().catch(() => undefined))
    )
  const handle = yield* opened(part, constants.O_RDWR | constants.O_CREAT)
  const { size } = yield* inClaim(() => handle.stat())
  const there = yield* inClaim(() => readJournal(journalPath, chunkBytes, file.size))
  // Somebody else cut the file off, or made it longer than it can be.
  const whole = size <= file.size && [...there].every((chunk) => Math.min((chunk + 1) * chunkBytes, file.size) <= size)
  const done = whole ? new Set(there) : new Set<number>()
  if (!whole) yield* inClaim(() => handle.truncate(0))
  // Written whole, so that a line which was cut off does not swallow the next one.
  yield* inClaim(async () => {
    const fresh = await open(journalPath, "w", 0o644)
    try {
      await fresh.write(`${[chunkBytes, ...done].join("\n")}\n`)
    } finally {
      await fresh.close()
    }
  })
  const journal = yield* opened(journalPath, constants.O_WRONLY | constants.O_APPEND)

  const hashing: Hashing = hash(part, file)
  let frontier = 0
  const advance = () => {
    const before = frontier
    while (frontier < count && done.has(frontier)) frontier++
    if (frontier > before) hashing.advance(Math.min(frontier * chunkBytes, file.size))
  }
  advance()

  const state: PartFile = {
    file,
    missing: Array.from({ length: count }, (_, chunk) => chunk).filter((chunk) => !done.has(chunk)),
    location: null,
    differs: false,
    write: makePieceWriter(handle),
    record: Effect.fnUntraced(function* (chunk) {
      yield* inClaim(() => journal.write(`${chunk}\n`))
      done.add(chunk)
      advance()
      return done.size === count
    }),
    finish: Effect.gen(function* () {
      // Its reader has a name of the file only: where that is gone, so is the claim.
      const digest = Effect.tryPromise({ try: () => hashing.digest, catch: (error) => error }).pipe(
        Effect.catch((error) =>
          Effect.andThen(
            inClaim(() => stat(part)),
            Effect.die(error)
          )
        )
      )
      const matches = !state.differs && (yield* digest) === expectedHash(file)
      if (!matches) hashing.drop()
      yield* inClaim(async () => {
        if (matches) await handle.sync()
        await handle.close()
        await journal.close()
        // In this order: a journal without its file says nothing, a file without its journal would come again.
        if (matches) await rename(part, target)
        else await rm(part, { force: true })
        await rm(journalPath, { force: true })
      })
      return matches
    })
  }
  return state
})
