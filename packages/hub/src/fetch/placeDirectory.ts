import { readdir, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { HubUnavailable } from "../failures.ts"
import { hasManifest, manifestName } from "./Manifest.ts"
import { isOccupied, onDisk, syncDirectory } from "./onDisk.ts"
import { beatName } from "./PartialDirectory.ts"

/** Empties a partial directory of other files, and records which files it is for. */
export const prepareDirectory = Effect.fnUntraced(function* (partial: string, manifest: string) {
  if (yield* hasManifest(partial, manifest)) return
  yield* onDisk(async () => {
    for (const name of await readdir(partial)) if (name !== beatName) await rm(join(partial, name), { recursive: true, force: true })
    await writeFile(join(partial, manifestName), manifest, { flush: true })
  })
})

/** Publishes the verified partial directory. If another download of the same files was first, its directory stays. */
export const placeDirectory = Effect.fnUntraced(function* (partial: string, directory: string, isPresent: Effect.Effect<boolean>) {
  const moved = () =>
    onDisk(() =>
      rename(partial, directory).then(
        () => true,
        (error) => (isOccupied(error) ? false : Promise.reject(error))
      )
    )
  yield* onDisk(async () => {
    await rm(join(partial, beatName), { force: true })
    await syncDirectory(partial)
  })
  if (!(yield* moved())) {
    if (yield* isPresent) return yield* onDisk(() => rm(partial, { recursive: true, force: true }))
    // The existing directory is not a download of these files, or it was changed. Its new name is that of a partial
    // directory, so the next owner removes it if this process dies before.
    const aside = `${directory}.partial-free.${crypto.randomUUID().slice(0, 8)}`
    yield* onDisk(() => rename(directory, aside))
    if (!(yield* moved())) return yield* new HubUnavailable({ message: "Another process is replacing the directory of the model." })
    yield* onDisk(() => rm(aside, { recursive: true, force: true }))
  }
  // The folders of the repository and of its owner may also be new.
  const parent = dirname(directory)
  for (const path of [parent, dirname(parent), dirname(dirname(parent))]) yield* onDisk(() => syncDirectory(path).catch(() => undefined))
})
