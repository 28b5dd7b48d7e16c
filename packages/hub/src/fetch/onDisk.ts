import { open } from "node:fs/promises"
import { Effect, Predicate } from "effect"
import { StoreFull } from "../failures.ts"

const codeOf = (error: unknown): unknown => (Predicate.hasProperty(error, "code") ? error.code : undefined)

const full = new Set<unknown>(["ENOSPC", "EDQUOT", "EFBIG"])

/** A full disk is an error that the caller of the download can handle; every other failure is a defect. */
export const diskFailure = (error: unknown): Effect.Effect<never, StoreFull> =>
  full.has(codeOf(error))
    ? Effect.fail(
        new StoreFull({
          message: "There is no space left for the files of the model. Ask the cluster administrator to free or enlarge the volume, then deploy again."
        })
      )
    : Effect.die(error)

/** Runs work on the file system. */
export const onDisk = <A>(work: () => Promise<A>): Effect.Effect<A, StoreFull> =>
  Effect.tryPromise({ try: work, catch: (error) => error }).pipe(Effect.catch(diskFailure))

/** Whether a rename failed because its source is missing, or because its target exists. */
export const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT"
export const isOccupied = (error: unknown): boolean => codeOf(error) === "EEXIST" || codeOf(error) === "ENOTEMPTY" || codeOf(error) === "ENOTDIR"

/** Makes the entries of a directory survive a power failure. */
export const syncDirectory = async (path: string): Promise<void> => {
  const handle = await open(path, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
