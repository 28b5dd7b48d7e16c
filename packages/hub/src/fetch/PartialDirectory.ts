import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises"
import { hostname } from "node:os"
import { basename, dirname, join } from "node:path"
import { Clock, Effect, Schedule, type Scope } from "effect"
import type { HubUnavailable } from "../failures.ts"
import { isMissing, onDisk } from "./onDisk.ts"

const host = hostname().replaceAll(/[^A-Za-z0-9-]/g, "-") || "host"
/** Tells this process from an earlier one that had its number. */
const session = crypto.randomUUID().slice(0, 8)
/** Names of the directories that fibres of this process work in. */
const active = new Set<string>()
let made = 0

const heartbeat = "10 seconds"
/** Milliseconds without a heartbeat after which another host's download counts as dead. */
const deadAfter = 120_000

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}

/** Whether nobody works any more in the partial directory of that name: its owner is part of the name, so that a rename changes both at once. */
const isAbandoned = (name: string, touched: number, now: number): boolean => {
  const owner = /\.partial-([A-Za-z0-9-]+)\.(\d{1,10})\.([0-9a-f]{8})\.\d+$/.exec(name)
  if (owner === null) return false
  if (owner[1] !== host) return now - touched > deadAfter
  const pid = Number(owner[2])
  if (pid !== process.pid) return !isRunning(pid)
  return owner[3] !== session || !active.has(name)
}

/** The partial directories of `directory` that nobody works in. */
const findAbandoned = Effect.fnUntraced(function* (directory: string) {
  const now = yield* Clock.currentTimeMillis
  const parent = dirname(directory)
  return yield* onDisk(async () => {
    const found: Array<string> = []
    for (const name of await readdir(parent)) {
      if (!name.startsWith(`${basename(directory)}.partial-`)) continue
      const status = await stat(join(parent, name)).catch(() => null)
      if (status?.isDirectory() === true && isAbandoned(name, status.mtimeMs, now)) found.push(join(parent, name))
    }
    return found
  })
})

/**
 * A directory beside `directory` that this fibre alone works in until the scope ends: what an earlier download left there, if any, else a new one.
 * A rename takes it over, so of several that try one succeeds.
 */
export const claimPartial = Effect.fnUntraced(function* (directory: string): Effect.fn.Return<string, HubUnavailable, Scope.Scope> {
  yield* onDisk(() => mkdir(dirname(directory), { recursive: true }))
  const name = `${basename(directory)}.partial-${host}.${process.pid}.${session}.${++made}`
  yield* Effect.acquireRelease(
    Effect.sync(() => active.add(name)),
    () => Effect.sync(() => active.delete(name))
  )
  const mine = join(dirname(directory), name)
  const touch = (path: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.promise(() => utimes(path, now / 1000, now / 1000).catch(() => undefined)))
  let claimed = false
  for (const abandoned of yield* findAbandoned(directory)) {
    // Touched first: whoever looks next sees a directory that somebody cares for.
    yield* touch(abandoned)
    claimed = yield* onDisk(() =>
      rename(abandoned, mine).then(
        () => true,
        (error) => (isMissing(error) ? false : Promise.reject(error))
      )
    )
    if (claimed) break
  }
  if (!claimed) yield* onDisk(() => mkdir(mine))
  yield* touch(mine).pipe(Effect.repeat(Schedule.spaced(heartbeat)), Effect.forkScoped)
  return mine
})

/** Removes what dead downloads of `directory` left, once it is there. */
export const removeAbandoned = Effect.fnUntraced(function* (directory: string) {
  for (const path of yield* findAbandoned(directory)) yield* onDisk(() => rm(path, { recursive: true, force: true }))
})
