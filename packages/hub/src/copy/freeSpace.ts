import { rename, rm, statfs } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Effect, Option } from "effect"
import type { StoreFull } from "../failures.ts"
import { lastUsed } from "../fetch/Manifest.ts"
import { onDisk } from "../fetch/onDisk.ts"
import { claimAtOnce, lastBeat, removePartial } from "../fetch/PartialDirectory.ts"
import { type StoreEntry, storeEntries } from "../fetch/storeEntries.ts"

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

interface UnusedCopy {
  readonly entry: StoreEntry
  readonly unusedSince: number
}

/**
 * Milliseconds that a copy must have been unused before `CopiesInUse.at`. A later user may be a pod that the report
 * does not include, and clocks differ.
 */
export const unknownFor = 600_000

export const freeBytes = (path: string) =>
  onDisk(async () => {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  })

/**
 * The copies under a root that cannot be in use, least recently used first, and remains of failed copies of other
 * commits than `own`.
 */
const unused = Effect.fnUntraced(function* (root: string, own: string, inUse: CopiesInUse) {
  const now = yield* Clock.currentTimeMillis
  const isInUse = ({ commit, isPartial }: StoreEntry) => !isPartial && inUse.commits.some((prefix) => commit.startsWith(prefix))
  const candidates: Array<UnusedCopy> = []
  for (const entry of yield* storeEntries(root)) {
    if (entry.directory === own || isInUse(entry)) continue
    const unusedSince = yield* entry.isPartial ? lastBeat(entry.path) : lastUsed(entry.path)
    const before = (entry.isPartial ? now : Math.min(inUse.at, now)) - unknownFor
    if (unusedSince !== null && unusedSince < before) candidates.push({ entry, unusedSince })
  }
  return candidates.sort((a, b) => a.unusedSince - b.unusedSince)
})

/**
 * Removes a copy under the claim that a copy works under. Returns false if another process works on it or has used it
 * in the meantime.
 */
const removeCopy = Effect.fnUntraced(function* ({ entry: { path }, unusedSince }: UnusedCopy) {
  const claim = yield* claimAtOnce(path)
  if (Option.isNone(claim) || (yield* lastUsed(path)) !== unusedSince) return false
  yield* onDisk(() => rename(path, join(claim.value.path, "removed")))
  yield* onDisk(() => rm(claim.value.path, { recursive: true, force: true }))
  return true
}, Effect.scoped)

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
  for (const copy of yield* unused(root, own, inUse)) {
    if ((yield* freeBytes(root)) >= needed) break
    const { commit, directory, isPartial, path, repo } = copy.entry
    if (isPartial) yield* removePartial(path, directory)
    else if (!(yield* removeCopy(copy))) continue
    removed.push({ repo, commit, unusedSince: copy.unusedSince, partial: isPartial })
  }
  return removed
})
