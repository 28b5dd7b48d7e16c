import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { onDisk } from "./onDisk.ts"

/** A directory of a commit in a folder with weights, at `<root>/<owner>/<name>/<commit>`. */
export interface StoreEntry {
  readonly repo: string
  readonly commit: string
  readonly path: string
  /** The commit's own directory, next to which a partial one lies. */
  readonly directory: string
  /** Whether it is a directory of an unfinished download or copy. */
  readonly isPartial: boolean
}

const entryName = /^([0-9a-f]{40})(\.partial-.*)?$/

const list = (path: string) => onDisk(() => readdir(path).catch(() => []))

/** The directories of commits under a root. Other directories are ignored. */
export const storeEntries = Effect.fnUntraced(function* (root: string) {
  const entries: Array<StoreEntry> = []
  for (const owner of yield* list(root)) {
    for (const name of yield* list(join(root, owner))) {
      const parent = join(root, owner, name)
      for (const entry of yield* list(parent)) {
        const [, commit, partial] = entryName.exec(entry) ?? []
        if (commit === undefined) continue
        entries.push({ repo: `${owner}/${name}`, commit, path: join(parent, entry), directory: join(parent, commit), isPartial: partial !== undefined })
      }
    }
  }
  return entries
})
