import { readdir, rename, rm, stat, statfs } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Clock, Effect, Option } from "effect"
import type { StoreFull } from "../failures.ts"
import { lastUsed } from "../fetch/Manifest.ts"
import { onDisk } from "../fetch/onDisk.ts"
import { beatName, claimAtOnce } from "../fetch/PartialDirectory.ts"

/** The copies of a node that may be in use, as reported by a component that sees all pods. */
export interface CopiesInUse {
  /** Time of the report in Unix milliseconds. */
  readonly at: number
  /** Commits, or their first characters. */
  readonly commits: ReadonlyArray<string>
}

export interface RemovedCopy {
  readonly repo: string
  readonly commit: string
  readonly unusedSince: number
  /** Whether the directory was partial. */
  readonly partial: boolean
}

/**
 * Milliseconds that a copy must have been unused before `CopiesInUse.at`. A later user may be a pod that the report
 * does not include, and clocks differ.
 */
export const unknownFor = 600_000

const entryName = /^([0-9a-f]{40})(\.partial-.*)?$/

const list = (path: string) => onDisk(() => readdir(path).catch(() => []))

export const freeBytes = (path: string) =>
  onDisk(async () => {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  })

/** When a partial directory was last used, in Unix milliseconds. */
const lastBeat = (path: string) =>
  Effect.promise(async () => {
    const stats = (await stat(join(path, beatName)).catch(() => null)) ?? (await stat(path).catch(() => null))
    return stats?.mtimeMs ?? null
  })

/**
 * The copies under a root that cannot be in use, least recently used first, and remains of failed copies of other
 * commits than `own`.
 */
const unused = Effect.fnUntraced(function* (root: string, own: string, inUse: CopiesInUse) {
  const now = yield* Clock.currentTimeMillis
  const candidates: Array<RemovedCopy & { readonly path: string }> = []
  for (const owner of yield* list(root)) {
    for (const name of yield* list(join(root, owner))) {
      for (const entry of yield* list(join(root, owner, name))) {
        const path = join(root, owner, name, entry)
        const [, commit, partial] = entryName.exec(entry) ?? []
        if (commit === undefined || join(root, owner, name, commit) === own) continue
        if (partial === undefined && inUse.commits.some((prefix) => commit.startsWith(prefix))) continue
        const unusedSince = yield* partial === undefined ? lastUsed(path) : lastBeat(path)
        const before = (partial === undefined ? Math.min(inUse.at, now) : now) - unknownFor
        if (unusedSince !== null && unusedSince < before)
          candidates.push({ repo: `${owner}/${name}`, commit, unusedSince, partial: partial !== undefined, path })
      }
    }
  }
  return candidates.sort((a, b) => a.unusedSince - b.unusedSince)
})

/**
 * Removes unused copies, least recently used first, until this many bytes are free, and returns them. Each removal
 * holds the claim that a copy works under, so a concurrent user finds the copy complete or absent.
 */
export const freeSpace = Effect.fnUntraced(function* (
  root: string,
  own: string,
  needed: number,
  inUse: CopiesInUse
): Effect.fn.Return<ReadonlyArray<RemovedCopy>, StoreFull> {
  const removed: Array<RemovedCopy> = []
  for (const { path, ...copy } of yield* unused(root, own, inUse)) {
    if ((yield* freeBytes(root)) >= needed) break
    if (copy.partial) {
      // Rename it first, so that a former owner notices the loss.
      const aside = join(dirname(path), `${copy.commit}.partial-free.${crypto.randomUUID().slice(0, 8)}`)
      yield* onDisk(() => rename(path, aside).catch(() => undefined))
      yield* onDisk(() => rm(aside, { recursive: true, force: true }))
      removed.push(copy)
      continue
    }
    yield* Effect.scoped(
      Effect.gen(function* () {
        const claim = yield* claimAtOnce(path)
        // Another process works on it or has used it in the meantime.
        if (Option.isNone(claim) || (yield* lastUsed(path)) !== copy.unusedSince) return
        yield* onDisk(() => rename(path, join(claim.value.path, "removed")))
        yield* onDisk(() => rm(claim.value.path, { recursive: true, force: true }))
        removed.push(copy)
      })
    )
  }
  return removed
})
