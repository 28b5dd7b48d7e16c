import { readdir, rename, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { makeCopyThreads } from "../copy/CopyThreads.ts"
import { wrongFiles } from "../copy/wrongFiles.ts"
import type { StoreFull } from "../failures.ts"
import { lastUsed, listedFiles, noteUse } from "./Manifest.ts"
import { onDisk } from "./onDisk.ts"
import { beatName, claimAtOnce } from "./PartialDirectory.ts"
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

const commitName = /^[0-9a-f]{40}$/
const partialName = /^([0-9a-f]{40})\.partial-/

const list = (path: string) => onDisk(() => readdir(path).catch(() => []))

const keyOf = ({ commit, repo }: StoredCommit) => `${repo}@${commit}`

/** When a partial directory was last used, in Unix milliseconds. */
const lastBeat = (path: string) =>
  Effect.promise(() =>
    stat(join(path, beatName)).then(
      ({ mtimeMs }) => mtimeMs,
      () =>
        stat(path).then(
          ({ mtimeMs }) => mtimeMs,
          () => null
        )
    )
  )

/**
 * Removes commits that were unused for some time, and the remains of failed downloads. Each pass records a use of the
 * needed commits, so the age counts from the last observed need. A removal holds the same claim as a download, and a
 * download records its use under that claim. If the download is first, nothing is removed; otherwise it finds nothing
 * and downloads the files again. Directories that are not commits are ignored.
 */
export const cleanStore = Effect.fn("cleanStore")(function* <E>({
  age,
  dryRun,
  forget,
  needed,
  now: readNow,
  onRemoved,
  onVerified,
  root,
  verifyAge
}: CleanOptions<E>): Effect.fn.Return<void, E | StoreFull> {
  const now = yield* readNow
  const oldest = now - Math.max(age, leastAge)
  const wanted = new Set((yield* needed).map(keyOf))
  for (const owner of yield* list(root)) {
    for (const name of yield* list(join(root, owner))) {
      const repo = `${owner}/${name}`
      const parent = join(root, owner, name)
      for (const entry of yield* list(parent)) {
        const path = join(parent, entry)
        if (commitName.test(entry)) {
          const stored = { repo, commit: entry }
          if (wanted.has(keyOf(stored))) yield* noteUse(path, now)
          else yield* removeCommit(path, stored)
          yield* verifyCommit(path, stored)
          continue
        }
        const commit = partialName.exec(entry)?.[1]
        if (commit === undefined || wanted.has(keyOf({ repo, commit }))) continue
        const at = yield* lastBeat(path)
        if (at === null || at > oldest) continue
        yield* onRemoved({ repo, commit, partial: true, unusedSince: at })
        if (dryRun) continue
        // Rename it first, so that a former owner notices the loss.
        const aside = join(parent, `${commit}.partial-free.${crypto.randomUUID().slice(0, 8)}`)
        yield* onDisk(() => rename(path, aside).catch(() => undefined))
        yield* onDisk(() => rm(aside, { recursive: true, force: true }))
      }
    }
  }

  function verifyCommit(path: string, stored: StoredCommit): Effect.Effect<void, E | StoreFull> {
    return Effect.gen(function* () {
      const files = yield* listedFiles(path, stored.repo, stored.commit)
      if (verifyAge === null || dryRun || Option.isNone(files)) return
      const before = yield* verifiedAt(path)
      if (before !== null && before > now - verifyAge) return
      const bytes = files.value.reduce((sum, { size }) => sum + size, 0)
      const threads = yield* makeCopyThreads(files.value.length, bytes, () => undefined)
      const wrong = yield* wrongFiles(path, files.value, "full", threads)
      if (wrong.length === 0) yield* writeRecord(path, files.value)
      else {
        // The next user checks first, and finds no record.
        yield* forget(stored)
        yield* onDisk(() => rm(join(path, recordName), { force: true }))
      }
      yield* onVerified({ ...stored, wrong: wrong[0]?.path ?? null, count: wrong.length })
    }).pipe(Effect.scoped)
  }

  function removeCommit(path: string, stored: StoredCommit): Effect.Effect<void, E | StoreFull> {
    return Effect.gen(function* () {
      const used = yield* lastUsed(path)
      if (used === null || used > oldest) return
      if (dryRun) return yield* onRemoved({ ...stored, partial: false, unusedSince: used })
      const claim = yield* claimAtOnce(path)
      if (Option.isNone(claim)) return
      // From here on, no other process can record a use.
      const again = yield* lastUsed(path)
      if (again === null || again > oldest) return
      yield* forget(stored)
      if ((yield* needed).some((each) => keyOf(each) === keyOf(stored))) return yield* noteUse(path, now)
      yield* onDisk(() => rename(path, join(claim.value.path, "removed")))
      yield* onRemoved({ ...stored, partial: false, unusedSince: used })
      yield* onDisk(() => rm(claim.value.path, { recursive: true, force: true }))
    }).pipe(Effect.scoped)
  }
})
