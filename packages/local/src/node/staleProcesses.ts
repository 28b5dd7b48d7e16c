import { readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { signal, startOf } from "../process/ProcessIdentity.ts"

const pidFiles = async (state: string) => {
  const pods = await readdir(join(state, "pods")).catch(() => [])
  const files = await Promise.all(
    pods.map(async (uid) => {
      const names = await readdir(join(state, "pods", uid)).catch(() => [])
      return names.filter((name) => name.endsWith(".pid")).map((name) => join(state, "pods", uid, name))
    })
  )
  return files.flat()
}

/**
 * Kills containers that a killed agent left behind. A group whose first process has another start time is not touched,
 * because its number was reused.
 */
export const endStale = Effect.fn("endStale")(function* (state: string): Effect.fn.Return<void> {
  for (const path of yield* Effect.promise(() => pidFiles(state))) {
    const text = yield* Effect.promise(() => readFile(path, "utf8").catch(() => ""))
    const space = text.indexOf(" ")
    const word = text.slice(0, space)
    const started = text.slice(space + 1)
    const pid = Number.parseInt(word, 10)
    if (Number.isInteger(pid) && pid > 1 && started !== "") {
      const alive = yield* Effect.promise(() => startOf(pid))
      // A group can outlive its first process. Until it ends, its number is not reused.
      if (alive === undefined || alive === started) signal(-pid, "SIGKILL")
      // SIGKILL cannot be refused, so this only waits for the kernel.
      while ((yield* Effect.promise(() => startOf(pid))) === started) yield* Effect.sleep(10)
    }
    yield* Effect.promise(() => rm(path, { force: true }))
  }
})

/** The pods that have a folder on this machine. */
export const knownPods = (state: string): Effect.Effect<ReadonlyArray<string>> => Effect.promise(() => readdir(join(state, "pods")).catch(() => []))
