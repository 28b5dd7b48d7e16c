import { mkdir, readdir, readFile, readlink, rename, rm, stat, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { basename, dirname, join } from "node:path"
import { Clock, Effect, Option, Random, type Scope } from "effect"
import { HubUnavailable, type StoreFull } from "../failures.ts"
import { diskFailure, isMissing, onDisk } from "./onDisk.ts"

/** Distinguishes this process from an earlier one with the same process id. */
const session = crypto.randomUUID().slice(0, 8)
/** Names of the directories that fibers of this process work in. */
const active = new Set<string>()
let counter = 0

/** A file that the owner of a partial directory changes periodically. */
export const beatName = ".beat"
const beatMillis = 5_000
/** Milliseconds without a change after which an owner on another machine counts as dead. */
const deadAfter = 45_000
/** Milliseconds without a beat after which other processes may soon consider this one dead. */
const heldFor = 30_000
const lookMillis = 1_000

/** This machine, and the container on it if several see different processes. */
const machineId = Effect.promise(async () => {
  const space = await readlink("/proc/self/ns/pid").catch(() => "")
  const name = `${hostname()}-${space.replaceAll(/\D/g, "")}`.replaceAll(/[^A-Za-z0-9-]/g, "-")
  return name.slice(0, 80)
})

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}

/**
 * The observed directories of other owners: the last beat, and the local time in milliseconds since which it is
 * unchanged. Clocks of machines differ.
 */
type ObservedBeats = Map<string, { readonly beat: string; readonly since: number }>

/**
 * Whether the owner of a partial directory is gone. The owner is part of the name, so a rename changes both atomically.
 */
const isAbandoned = Effect.fnUntraced(function* (parent: string, name: string, machine: string, observed: ObservedBeats) {
  if (/\.partial-free\.[0-9a-f]{8}$/.test(name)) return true
  const owner = /\.partial-([A-Za-z0-9-]+)\.(\d{1,10})\.([0-9a-f]{8})\.\d+$/.exec(name)
  if (owner?.[1] === machine) {
    const pid = Number(owner[2])
    return pid !== process.pid ? !isRunning(pid) : owner[3] !== session || !active.has(name)
  }
  const now = yield* Clock.currentTimeMillis
  // Read the content: a network file system may answer `stat` from its cache.
  const beat = yield* Effect.promise(() => readFile(join(parent, name, beatName), "utf8").catch(() => ""))
  const before = observed.get(name)
  if (before?.beat === beat) return now - before.since > deadAfter
  observed.set(name, { beat, since: now })
  return false
})

/** The names of the partial directories of `directory`. */
const listPartial = (directory: string) =>
  onDisk(async () => (await readdir(dirname(directory))).filter((name) => name.startsWith(`${basename(directory)}.partial-`)).sort())

const renamed = (from: string, to: string) =>
  onDisk(() =>
    rename(from, to).then(
      () => true,
      (error) => (isMissing(error) ? false : Promise.reject(error))
    )
  )

/**
 * Takes over a partial directory or creates one; null if another owner is or may become active. The take-over is a
 * rename, so only one process succeeds. After creating a directory, a process checks again and withdraws if there is
 * another, so two never start at once.
 */
const tryClaim = Effect.fnUntraced(function* (directory: string, machine: string, observed: ObservedBeats) {
  const parent = dirname(directory)
  const names = yield* listPartial(directory)
  const abandoned = yield* Effect.filter(names, (name) => isAbandoned(parent, name, machine, observed))
  if (abandoned.length < names.length) return null
  const name = `${basename(directory)}.partial-${machine}.${process.pid}.${session}.${++counter}`
  const mine = join(parent, name)
  active.add(name)
  const [first] = abandoned
  if (first === undefined) yield* onDisk(() => mkdir(mine))
  else if (!(yield* renamed(join(parent, first), mine))) {
    active.delete(name)
    return null
  }
  const otherNames = (yield* listPartial(directory)).filter((other) => other !== name)
  const rivals = first === undefined ? otherNames : otherNames.filter((other) => !abandoned.includes(other))
  if (rivals.length === 0) return name
  if (first === undefined) yield* onDisk(() => rm(mine, { recursive: true, force: true }))
  else yield* renamed(mine, `${directory}.partial-free.${crypto.randomUUID().slice(0, 8)}`)
  active.delete(name)
  return null
})

/** A directory next to the target directory that only this fiber works in. */
export interface Claim {
  readonly path: string
  /**
   * Whether no other process has taken over the directory; rejects on a disk error. Must be called before each write.
   */
  readonly isHeld: () => Promise<boolean>
  /** Signals that the owner is active while it runs; fails after another process has taken over. */
  readonly beat: Effect.Effect<never, HubUnavailable>
}

/** Another process has taken over the directory and its contents. */
export const lostClaim = new HubUnavailable({ message: "Another download took over the directory of the model." })

/** Runs work in a claimed directory. If the directory no longer exists, another process has taken it over. */
export const inClaim = <A>(work: () => Promise<A>): Effect.Effect<A, HubUnavailable | StoreFull> =>
  Effect.tryPromise({ try: work, catch: (error) => error }).pipe(
    Effect.catch((error): Effect.Effect<never, HubUnavailable | StoreFull> => (isMissing(error) ? Effect.fail(lostClaim) : diskFailure(error)))
  )

const hold = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Claim, StoreFull> {
  const clock = yield* Clock.Clock
  let beats = 0
  let last = 0
  let gone = false
  /** Rejects on a disk error. */
  const show = async () => {
    const begun = clock.currentTimeMillisUnsafe()
    try {
      await writeFile(join(path, beatName), `${session} ${++beats}`)
      last = begun
    } catch (error) {
      if (!isMissing(error)) throw error
      gone = true
    }
  }
  yield* onDisk(show)
  return {
    path,
    isHeld: async () => {
      // After a long pause or disk wait, first check that the directory still has its name.
      if (!gone && clock.currentTimeMillisUnsafe() - last >= heldFor) await show()
      return !gone
    },
    beat: Effect.gen(function* () {
      while (!gone) {
        yield* Effect.sleep(beatMillis)
        // A full disk also fails the beat; the download itself reports that.
        yield* Effect.uninterruptible(Effect.ignore(onDisk(show)))
      }
      return yield* lostClaim
    })
  }
})

/** Claims a directory next to `directory` until the scope ends; null as for `tryClaim`. */
const claimOnce = (directory: string, machine: string, observed: ObservedBeats) =>
  tryClaim(directory, machine, observed).pipe(
    Effect.tap((name) =>
      name === null
        ? Effect.void
        : Effect.addFinalizer(() =>
            Effect.gen(function* () {
              // Renamed, so that the next owner does not need to wait for the beat to time out.
              yield* renamed(join(dirname(directory), name), `${directory}.partial-free.${crypto.randomUUID().slice(0, 8)}`)
              active.delete(name)
            }).pipe(Effect.ignore)
          )
    ),
    Effect.uninterruptible
  )

/** Claims a directory as `claimPartial` does; none if another owner is active. */
export const claimAtOnce = Effect.fnUntraced(function* (directory: string): Effect.fn.Return<Option.Option<Claim>, StoreFull, Scope.Scope> {
  const name = yield* claimOnce(directory, yield* machineId, new Map())
  return name === null ? Option.none() : Option.some(yield* hold(join(dirname(directory), name)))
})

/**
 * Waits until no other owner is active for `directory`, then owns its partial directory until the scope ends, including
 * the files of an earlier download. None if `isThere` becomes true while waiting. `onWait` is called repeatedly while
 * waiting.
 */
export const claimPartial = Effect.fnUntraced(function* (
  directory: string,
  isPresent: Effect.Effect<boolean>,
  onWait: Effect.Effect<void>
): Effect.fn.Return<Option.Option<Claim>, StoreFull, Scope.Scope> {
  yield* onDisk(() => mkdir(dirname(directory), { recursive: true }))
  const machine = yield* machineId
  const observed: ObservedBeats = new Map()
  while (true) {
    const name = yield* claimOnce(directory, machine, observed)
    if (name !== null) return Option.some(yield* hold(join(dirname(directory), name)))
    if (yield* isPresent) return Option.none()
    yield* onWait
    yield* Effect.sleep(lookMillis + (yield* Random.nextIntBetween(0, lookMillis)))
  }
})

/** When a partial directory was last used, in Unix milliseconds; null if it does not exist. */
export const lastBeat = (path: string): Effect.Effect<number | null> =>
  Effect.promise(async () => {
    const stats = (await stat(join(path, beatName)).catch(() => null)) ?? (await stat(path).catch(() => null))
    return stats?.mtimeMs ?? null
  })

/** Removes a partial directory of `directory`. It is renamed first, so that a former owner notices the loss. */
export const removePartial = (path: string, directory: string): Effect.Effect<void, StoreFull> => {
  const aside = `${directory}.partial-free.${crypto.randomUUID().slice(0, 8)}`
  return Effect.andThen(
    onDisk(() => rename(path, aside).catch(() => undefined)),
    onDisk(() => rm(aside, { recursive: true, force: true }))
  )
}

/** Removes the remains of failed downloads of `directory` after it has been created. */
export const removeAbandoned = Effect.fnUntraced(function* (directory: string) {
  const machine = yield* machineId
  const observed: ObservedBeats = new Map()
  for (const name of yield* listPartial(directory)) {
    if (yield* isAbandoned(dirname(directory), name, machine, observed)) {
      yield* onDisk(() => rm(join(dirname(directory), name), { recursive: true, force: true }))
    }
  }
})
