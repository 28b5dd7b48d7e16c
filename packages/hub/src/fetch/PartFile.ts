import { constants, type FileHandle, open, readFile, rename, rm, stat } from "node:fs/promises"
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

const partOf = (target: string): string => `${target}.part`
export const journalOf = (target: string): string => `${target}.chunks`

/** Opens a file in a claimed directory until the scope ends. */
const openFile = (path: string, flags: number) =>
  Effect.acquireRelease(
    inClaim(() => open(path, flags, 0o644)),
    (handle) => Effect.promise(() => handle.close().catch(() => undefined))
  )

/** The existing chunks of an opened part file. If its journal and its size disagree, it is emptied. */
const existingChunks = Effect.fnUntraced(function* (handle: FileHandle, journalPath: string, chunkBytes: number, fileSize: number) {
  const { size } = yield* inClaim(() => handle.stat())
  const existing = yield* inClaim(() => readJournal(journalPath, chunkBytes, fileSize))
  // Another process truncated the file or made it too long.
  const isConsistent = size <= fileSize && [...existing].every((chunk) => Math.min((chunk + 1) * chunkBytes, fileSize) <= size)
  if (isConsistent) return new Set(existing)
  yield* inClaim(() => handle.truncate(0))
  return new Set<number>()
})

/**
 * Rewrites the journal completely, so that a truncated line does not corrupt the next one, and opens it for more lines.
 */
const openJournal = Effect.fnUntraced(function* (journalPath: string, chunkBytes: number, chunks: ReadonlySet<number>) {
  yield* inClaim(async () => {
    const fresh = await open(journalPath, "w", 0o644)
    try {
      await fresh.write(`${[chunkBytes, ...chunks].join("\n")}\n`)
    } finally {
      await fresh.close()
    }
  })
  return yield* openFile(journalPath, constants.O_WRONLY | constants.O_APPEND)
})

/** Reports to the hashing how many chunks exist from the start of the file without a gap. */
const makeFrontier = (hashing: Hashing, done: ReadonlySet<number>, { chunkBytes, file }: PartOptions) => {
  let frontier = 0
  return () => {
    const before = frontier
    while (done.has(frontier)) frontier++
    if (frontier > before) hashing.advance(Math.min(frontier * chunkBytes, file.size))
  }
}

/** The hash of a part file. The reader opens the file by name. If the name is gone, so is the claim. */
const digestOf = (hashing: Hashing, part: string) =>
  Effect.tryPromise({ try: () => hashing.digest, catch: (error) => error }).pipe(
    Effect.catch((error) =>
      Effect.andThen(
        inClaim(() => stat(part)),
        Effect.die(error)
      )
    )
  )

/** Closes a part file. A correct one gets its name; a wrong one is removed. */
const closePart = (target: string, handle: FileHandle, journal: FileHandle, isCorrect: boolean) =>
  inClaim(async () => {
    if (isCorrect) await handle.sync()
    await handle.close()
    await journal.close()
    // In this order: a journal without its file is ignored, but a file without its journal would be downloaded again.
    if (isCorrect) await rename(partOf(target), target)
    else await rm(partOf(target), { force: true })
    await rm(journalOf(target), { force: true })
  })

/** Resumes the download of a file, or starts it. */
export const openPart = Effect.fnUntraced(function* (options: PartOptions): Effect.fn.Return<PartFile, HubUnavailable | StoreFull, Scope.Scope> {
  const { chunkBytes, file, hash, target } = options
  const part = partOf(target)
  const count = Math.ceil(file.size / chunkBytes)
  const handle = yield* openFile(part, constants.O_RDWR | constants.O_CREAT)
  const done = yield* existingChunks(handle, journalOf(target), chunkBytes, file.size)
  const journal = yield* openJournal(journalOf(target), chunkBytes, done)
  const hashing = hash(part, file)
  const advance = makeFrontier(hashing, done, options)
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
      const isCorrect = !state.differs && (yield* digestOf(hashing, part)) === expectedHash(file)
      if (!isCorrect) hashing.drop()
      yield* closePart(target, handle, journal, isCorrect)
      return isCorrect
    })
  }
  return state
})
