import { rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { makeCopyThreads } from "../copy/CopyThreads.ts"
import { wrongFiles } from "../copy/wrongFiles.ts"
import type { StoreFull } from "../failures.ts"
import { lastUsed, listedFiles, noteUse } from "./Manifest.ts"
import { onDisk } from "./onDisk.ts"
import { claimAtOnce, lastBeat, removePartial } from "./PartialDirectory.ts"
import { type StoreEntry, storeEntries } from "./storeEntries.ts"
import { recordName, verifiedAt, writeRecord } from "./VerifiedRecord.ts"

/** A commit in the store, at `<root>/<owner>/<name>/<commit>`. */
export interface StoredCommit {
  readonly repo: string
  readonly commit: string
}

interface CleanOptions<E> {
  readonly root: string
  /**
   * The current time for ages in Unix milliseconds. It comes from the database, because a machine's clock may be wrong.
   */
  readonly now: Effect.Effect<number, E>
  /** Evaluated again before each removal. */
  readonly needed: Effect.Effect<ReadonlyArray<StoredCommit>, E>
  /**
   * Called before the last evaluation of `needed` and the removal. From then on, no component may rely on the files
   * without a check of the store.
   */
  readonly forget: (stored: StoredCommit) => Effect.Effect<void, E>
  /** Milliseconds of disuse before a removal; at least a day, so that a user that finds files can rely on them. */
  readonly age: number
  /** Reports without removing. */
  readonly dryRun: boolean
  /** Milliseconds after which a remaining commit is verified again byte for byte; null: never. */
  readonly verifyAge: number | null
  /** Called after a repeated verification with the first wrong file and the number of wrong files. */
  readonly onVerified: (verified: StoredCommit & { readonly wrong: string | null; readonly count: number }) => Effect.Effect<void>
  readonly onRemoved: (removed: StoredCommit & { readonly partial: boolean; readonly unusedSince: number }) => Effect.Effect<void>
}

/** Minimum age for clean-up in milliseconds. */
export const leastAge = 86_400_000

const keyOf = ({ commit, repo }: StoredCommit) => `${repo}@${commit}`

/** A pass of the clean-up. */
interface Pass<E> extends Omit<CleanOptions<E>, "now"> {
  /** The time of its start. */
  readonly now: number
  /** Entries that were used after this time stay. Both times are in Unix milliseconds. */
  readonly oldest: number
}

const removePartialEntry = Effect.fnUntraced(function* <E>({ dryRun, oldest, onRemoved }: Pass<E>, { commit, directory, path, repo }: StoreEntry) {
  const unusedSince = yield* lastBeat(path)
  if (unusedSince === null || unusedSince > oldest) return
  yield* onRemoved({ repo, commit, partial: true, unusedSince })
  if (!dryRun) yield* removePartial(path, directory)
})

const removeCommit = <E>(pass: Pass<E>, { commit, path, repo }: StoreEntry): Effect.Effect<void, E | StoreFull> =>
  Effect.gen(function* () {
    const { dryRun, forget, needed, now, oldest, onRemoved } = pass
    const used = yield* lastUsed(path)
    if (used === null || used > oldest) return
    if (dryRun) return yield* onRemoved({ repo, commit, partial: false, unusedSince: used })
    const claim = yield* claimAtOnce(path)
    if (Option.isNone(claim)) return
    // From here on, no other process can record a use.
    const again = yield* lastUsed(path)
    if (again === null || again > oldest) return
    yield* forget({ repo, commit })
    if ((yield* needed).some((each) => keyOf(each) === keyOf({ repo, commit }))) return yield* noteUse(path, now)
    yield* onDisk(() => rename(path, join(claim.value.path, "removed")))
    yield* onRemoved({ repo, commit, partial: false, unusedSince: used })
    yield* onDisk(() => rm(claim.value.path, { recursive: true, force: true }))
  }).pipe(Effect.scoped)

/** Verifies a commit again byte for byte if its last verification was too long ago. */
const verifyCommit = <E>(pass: Pass<E>, { commit, path, repo }: StoreEntry): Effect.Effect<void, E | StoreFull> =>
  Effect.gen(function* () {
    const { dryRun, forget, now, onVerified, verifyAge } = pass
    const files = yield* listedFiles(path, repo, commit)
    if (verifyAge === null || dryRun || Option.isNone(files)) return
    const before = yield* verifiedAt(path)
    if (before !== null && before > now - verifyAge) return
    const bytes = files.value.reduce((sum, { size }) => sum + size, 0)
    const threads = yield* makeCopyThreads(files.value.length, bytes, () => undefined)
    const wrong = yield* wrongFiles(path, files.value, "full", threads)
    if (wrong.length === 0) yield* writeRecord(path, files.value)
    else {
      // The next user checks first, and finds no record.
      yield* forget({ repo, commit })
      yield* onDisk(() => rm(join(path, recordName), { force: true }))
    }
    yield* onVerified({ repo, commit, wrong: wrong[0]?.path ?? null, count: wrong.length })
  }).pipe(Effect.scoped)

/**
 * Removes commits that were unused for some time, and the remains of failed downloads. Each pass records a use of the
 * needed commits, so the age counts from the last observed need. A removal holds the same claim as a download, and a
 * download records its use under that claim. If the download is first, nothing is removed; otherwise it finds nothing
 * and downloads the files again. Directories that are not commits are ignored.
 */
export const cleanStore = Effect.fn("cleanStore")(function* <E>(options: CleanOptions<E>): Effect.fn.Return<void, E | StoreFull> {
  const now = yield* options.now
  const pass: Pass<E> = { ...options, now, oldest: now - Math.max(options.age, leastAge) }
  const wanted = new Set((yield* options.needed).map(keyOf))
  for (const entry of yield* storeEntries(options.root)) {
    const isWanted = wanted.has(keyOf(entry))
    if (entry.isPartial) {
      if (!isWanted) yield* removePartialEntry(pass, entry)
      continue
    }
    if (isWanted) yield* noteUse(entry.path, now)
    else yield* removeCommit(pass, entry)
    yield* verifyCommit(pass, entry)
  }
})
