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

/** A commit's files in the store, `<root>/<owner>/<name>/<commit>`. */
export interface StoredCommit {
  readonly repo: string
  readonly commit: string
}

interface CleanOptions<E> {
  readonly root: string
  /** The time that ages are counted to, Unix milliseconds: that of the database, since the clock of one machine may be wrong. */
  readonly now: Effect.Effect<number, E>
  /** Asked again before each removal. */
  readonly needed: Effect.Effect<ReadonlyArray<StoredCommit>, E>
  /** Told before `needed` is asked for the last time and the files go: nobody may count on them from then on without a look at the store. */
  readonly forget: (stored: StoredCommit) => Effect.Effect<void, E>
  /** Milliseconds for which nobody needed what is removed; at least a day, so that whoever finds files there keeps them. */
  readonly age: number
  /** Only tells. */
  readonly dryRun: boolean
  /** Milliseconds after which what stays is verified again byte for byte; null: never. */
  readonly verifyAge: number | null
  /** Told of what was verified again, with the first file that is no longer the commit's, and how many are not. */
  readonly onVerified: (verified: StoredCommit & { readonly wrong: string | null; readonly count: number }) => Effect.Effect<void>
  readonly onRemoved: (removed: StoredCommit & { readonly partial: boolean; readonly unusedSince: number }) => Effect.Effect<void>
}

/** Smallest age that clean-up goes by, in milliseconds. */
export const leastAge = 86_400_000

const commitName = /^[0-9a-f]{40}$/
const partialName = /^([0-9a-f]{40})\.partial-/

const list = (path: string) => onDisk(() => readdir(path).catch(() => []))

const keyOf = ({ commit, repo }: StoredCommit) => `${repo}@${commit}`

/** When a partial directory was last worked in, Unix milliseconds. */
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
 * Removes the commits that nobody has needed for some time, and what dead downloads of them left. Each pass notes that what is needed now is in use, so the time counts
 * from when the need was last seen. It removes by the same claim that a download works under, and a download notes its use under that claim: either the download
 * comes first, and nothing is removed, or it finds nothing, and brings the files again. What is no commit of ours is left alone.
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
        // Under another name first: whoever owned it finds it gone.
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
        // Whoever needs them next looks first, and finds nothing written down.
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
      // Nobody can note a use from here on but us.
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
