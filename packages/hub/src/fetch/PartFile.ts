import { constants, open, readFile, rename, rm, stat } from "node:fs/promises"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import { expectedHash } from "../contentHash.ts"
import type { HubUnavailable, StoreFull } from "../failures.ts"
import type { Hashing, HashThread } from "./HashThread.ts"
import { isMissing } from "./onDisk.ts"
import { inClaim } from "./PartialDirectory.ts"
import { makePieceWriter, type PieceWriter } from "./PieceWriter.ts"

/** An incomplete or unverified file `NAME.part`, with the list of its existing chunks in `NAME.chunks`. */
export interface PartFile {
  readonly file: RepositoryFile
  /** Missing chunks, in order. */
  readonly missing: ReadonlyArray<number>
  /** The location of the file that the hub gave, until it is refused. */
  location: URL | null
  /** Whether the hub's file differs from the commit's. */
  differs: boolean
  readonly write: PieceWriter
  /** Records that a chunk exists. Returns true for the last one. */
  readonly record: (chunk: number) => Effect.Effect<boolean, HubUnavailable | StoreFull>
  /** Verifies the file. A correct file gets its name; a wrong one is removed. */
  readonly finish: Effect.Effect<boolean, HubUnavailable | StoreFull>
}

/** Existing bytes of a file whose download uses chunks of this size. */
export const bytesThere = (chunks: ReadonlySet<number>, chunkBytes: number, { size }: RepositoryFile): number => {
  let bytes = 0
  for (const chunk of chunks) bytes += Math.min(chunkBytes, size - chunk * chunkBytes)
  return bytes
}

/**
 * Parses the journal: a first line with the chunk size, then a line per existing chunk. A truncated line is ignored,
 * and so is a journal with another chunk size.
 */
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
  /** The path of the verified file. */
  readonly target: string
  readonly chunkBytes: number
  readonly hash: HashThread
}

export const journalOf = (target: string): string => `${target}.chunks`

/** Resumes the download of a file, or starts it. */
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
  const existing = yield* inClaim(() => readJournal(journalPath, chunkBytes, file.size))
  // Another process truncated the file or made it too long.
  const isConsistent = size <= file.size && [...existing].every((chunk) => Math.min((chunk + 1) * chunkBytes, file.size) <= size)
  const done = isConsistent ? new Set(existing) : new Set<number>()
  if (!isConsistent) yield* inClaim(() => handle.truncate(0))
  // Rewritten completely, so that a truncated line does not corrupt the next one.
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
      // The reader opens the file by name. If the name is gone, so is the claim.
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
        // In this order: a journal without its file is ignored, but a file without its journal would be downloaded
        // again.
        if (matches) await rename(part, target)
        else await rm(part, { force: true })
        await rm(journalPath, { force: true })
      })
      return matches
    })
  }
  return state
})
