import { readdir, rename, rm, stat, statfs } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Clock, Effect, Option } from "effect"
import type { StoreFull } from "../failures.ts"
import { lastUsed } from "../fetch/Manifest.ts"
import { onDisk } from "../fetch/onDisk.ts"
import { beatName, claimAtOnce } from "../fetch/PartialDirectory.ts"

/** Which copies of a node others may need, as somebody saw it who knows all pods. */
export interface CopiesInUse {
  /** When that was, Unix milliseconds. */
  readonly at: number
  /** Commits, or their first characters. */
  readonly commits: ReadonlyArray<string>
}

export interface RemovedCopy {
  readonly repo: string
  readonly commit: string
  readonly unusedSince: number
  /** Whether it was not whole. */
  readonly partial: boolean
}

/**
 * Milliseconds that a copy must have gone unused before `CopiesInUse.at`: a pod that noted its use later may be one that whoever made the list did not know of, and
 * clocks differ.
 */
export const unknownFor = 600_000

const entryName = /^([0-9a-f]{40})(\.partial-.*)?$/

const list = (path: string) => onDisk(() => readdir(path).catch(() => []))

export const freeBytes = (path: string) =>
  onDisk(async () => {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  })

/** When somebody worked last in a directory that is not whole, Unix milliseconds. */
const lastBeat = (path: string) =>
  Effect.promise(async () => {
    const seen = (await stat(join(path, beatName)).catch(() => null)) ?? (await stat(path).catch(() => null))
    return seen?.mtimeMs ?? null
  })

/** The copies under a root that nobody can be using, the longest unused first; also what those who died at work left of others than `own`. */
const unused = Effect.fnUntraced(function* (root: string, own: string, inUse: CopiesInUse) {
  const now = yield* Clock.currentTimeMillis
  const found: Array<RemovedCopy & { readonly path: string }> = []
  for (const owner of yield* list(root)) {
    for (const name of yield* list(join(root, owner))) {
      for (const entry of yield* list(join(root, owner, name))) {
        const path = join(root, owner, name, entry)
        const [, commit, partial] = entryName.exec(entry) ?? []
        if (commit === undefined || join(root, owner, name, commit) === own) continue
        if (partial === undefined && inUse.commits.some((prefix) => commit.startsWith(prefix))) continue
        const unusedSince = yield* partial === undefined ? lastUsed(path) : lastBeat(path)
        const before = (partial === undefined ? Math.min(inUse.at, now) : now) - unknownFor
        if (unusedSince !== null && unusedSince < before) found.push({ repo: `${owner}/${name}`, commit, unusedSince, partial: partial !== undefined, path })
      }
    }
  }
  return found.sort((a, b) => a.unusedSince - b.unusedSince)
})

/**
 * Removes copies that nobody uses, the longest unused first, until so many bytes are free; what it removed. Each goes by the claim that a copy works under: whoever
 * comes for one meanwhile finds it whole or not at all.
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
      // Under another name first: whoever owned it finds it gone.
      const aside = join(dirname(path), `${copy.commit}.partial-free.${crypto.randomUUID().slice(0, 8)}`)
      yield* onDisk(() => rename(path, aside).catch(() => undefined))
      yield* onDisk(() => rm(aside, { recursive: true, force: true }))
      removed.push(copy)
      continue
    }
    yield* Effect.scoped(
      Effect.gen(function* () {
        const claim = yield* claimAtOnce(path)
        // Somebody else is at it, or has used it meanwhile.
        if (Option.isNone(claim) || (yield* lastUsed(path)) !== copy.unusedSince) return
        yield* onDisk(() => rename(path, join(claim.value.path, "removed")))
        yield* onDisk(() => rm(claim.value.path, { recursive: true, force: true }))
        removed.push(copy)
      })
    )
  }
  return removed
})
