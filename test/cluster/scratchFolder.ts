import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** A folder of a scope's own, which accounts other than ours can read; it goes with the scope. */
export const scratchFolder = (name: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = await mkdtemp(join(tmpdir(), `seatrial-${name}-`))
      await chmod(folder, 0o755)
      return folder
    }),
    // A process that was killed may still be writing its last file.
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  )
