import { mkdir, readdir, readFile, readlink, rename, rm, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { basename, dirname, join } from "node:path"
import { Clock, Effect, Option, Random, type Scope } from "effect"
import { HubUnavailable, type StoreFull } from "../failures.ts"
import { diskFailure, isMissing, onDisk } from "./onDisk.ts"

/** Tells this process from an earlier one that had its number. */
const session = crypto.randomUUID().slice(0, 8)
/** Names of the directories that fibres of this process work in. */
const active = new Set<string>()
let made = 0

/** A file that whoever works in a partial directory changes again and again. */
export const beatName = ".beat"
const beatMillis = 5_000
/** Milliseconds without a change after which somebody elsewhere counts as dead. */
const deadAfter = 45_000
/** Milliseconds without a beat of our own after which others may soon think that of us. */
const heldFor = 30_000
const lookMillis = 1_000

/** This machine, and where several see different processes on it, which of them. */
const here = Effect.promise(async () => {
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

/** What was seen of others' directories: their last beat, and since when it is that, in milliseconds of our own clock: clocks of machines differ. */
type Seen = Map<string, { readonly beat: string; readonly since: number }>

/** Whether nobody works any more in the partial directory of that name: its owner is part of the name, so that a rename changes both at once. */
const isAbandoned = Effect.fnUntraced(function* (parent: string, name: string, machine: string, seen: Seen) {
  if (/\.partial-free\.[0-9a-f]{8}$/.test(name)) return true
  const owner = /\.partial-([A-Za-z0-9-]+)\.(\d{1,10})\.([0-9a-f]{8})\.\d+$/.exec(name)
  if (owner?.[1] === machine) {
    const pid = Number(owner[2])
    return pid !== process.pid ? !isRunning(pid) : owner[3] !== session || !active.has(name)
  }
  const now = yield* Clock.currentTimeMillis
  // Read, not looked at: a network file system may answer a look from its memory.
  const beat = yield* Effect.promise(() => readFile(join(parent, name, beatName), "utf8").catch(() => ""))
  const before = seen.get(name)
  if (before?.beat === beat) return now - before.since > deadAfter
  seen.set(name, { beat, since: now })
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
 * Takes over what an earlier download left, or begins anew; null where somebody else works or may be about to. A rename takes over, so of several that try one
 * succeeds. Whoever begins anew looks once more afterwards, and withdraws where there is any other: so never do two begin.
 */
const tryClaim = Effect.fnUntraced(function* (directory: string, machine: string, seen: Seen) {
  const parent = dirname(directory)
  const names = yield* listPartial(directory)
  const abandoned = yield* Effect.filter(names, (name) => isAbandoned(parent, name, machine, seen))
  if (abandoned.length < names.length) return null
  const name = `${basename(directory)}.partial-${machine}.${process.pid}.${session}.${++made}`
  const mine = join(parent, name)
  active.add(name)
  const [first] = abandoned
  if (first === undefined) yield* onDisk(() => mkdir(mine))
  else if (!(yield* renamed(join(parent, first), mine))) {
    active.delete(name)
    return null
  }
  const others = (yield* listPartial(directory)).filter((other) => other !== name)
  const rivals = first === undefined ? others : others.filter((other) => !abandoned.includes(other))
  if (rivals.length === 0) return name
  if (first === undefined) yield* onDisk(() => rm(mine, { recursive: true, force: true }))
  else yield* renamed(mine, `${directory}.partial-free.${crypto.randomUUID().slice(0, 8)}`)
  active.delete(name)
  return null
})

/** A directory beside the one that is to be made, in which this fibre alone works. */
export interface Claim {
  readonly path: string
  /** Whether nobody else has taken it over; rejects where the disk does. To be asked before each write. */
  readonly isHeld: () => Promise<boolean>
  /** Shows others that somebody is at work, for as long as it runs; fails once somebody else has the directory. */
  readonly beat: Effect.Effect<never, HubUnavailable>
}

/** Somebody else has the directory, and what was done in it. */
export const lostClaim = new HubUnavailable({ message: "Another download took over the directory of the model." })

/** Work in a claimed directory: where that is not there any more, somebody else has taken it over. */
export const inClaim = <A>(work: () => Promise<A>): Effect.Effect<A, HubUnavailable | StoreFull> =>
  Effect.tryPromise({ try: work, catch: (error) => error }).pipe(
    Effect.catch((error): Effect.Effect<never, HubUnavailable | StoreFull> => (isMissing(error) ? Effect.fail(lostClaim) : diskFailure(error)))
  )

const hold = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Claim, StoreFull> {
  const clock = yield* Clock.Clock
  let beats = 0
  let last = 0
  let gone = false
  /** Rejects where the disk does. */
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
      // Who was paused for long, or waited long for the disk, looks first whether the directory still has its name.
      if (!gone && clock.currentTimeMillisUnsafe() - last >= heldFor) await show()
      return !gone
    },
    beat: Effect.gen(function* () {
      while (!gone) {
        yield* Effect.sleep(beatMillis)
        // A disk that is full has room for no beat either; whoever downloads hears of that itself.
        yield* Effect.uninterruptible(Effect.ignore(onDisk(show)))
      }
      return yield* lostClaim
    })
  }
})

/** Claims the directory beside `directory` until the scope ends; null as for `tryClaim`. */
const claimOnce = (directory: string, machine: string, seen: Seen) =>
  tryClaim(directory, machine, seen).pipe(
    Effect.tap((name) =>
      name === null
        ? Effect.void
        : Effect.addFinalizer(() =>
            Effect.gen(function* () {
              // Whoever comes next need not wait to see that nobody is here.
              yield* renamed(join(dirname(directory), name), `${directory}.partial-free.${crypto.randomUUID().slice(0, 8)}`)
              active.delete(name)
            }).pipe(Effect.ignore)
          )
    ),
    Effect.uninterruptible
  )

/** The claim of a directory beside which nobody works, as `claimPartial` gives it; none where somebody does. */
export const claimAtOnce = Effect.fnUntraced(function* (directory: string): Effect.fn.Return<Option.Option<Claim>, StoreFull, Scope.Scope> {
  const name = yield* claimOnce(directory, yield* here, new Map())
  return name === null ? Option.none() : Option.some(yield* hold(join(dirname(directory), name)))
})

/**
 * Waits until nobody else works beside `directory`, then works there alone until the scope ends, with what an earlier download left; none where `isThere` comes true
 * meanwhile. `onWait` is done again and again while it waits.
 */
export const claimPartial = Effect.fnUntraced(function* (
  directory: string,
  isThere: Effect.Effect<boolean>,
  onWait: Effect.Effect<void>
): Effect.fn.Return<Option.Option<Claim>, StoreFull, Scope.Scope> {
  yield* onDisk(() => mkdir(dirname(directory), { recursive: true }))
  const machine = yield* here
  const seen: Seen = new Map()
  while (true) {
    const name = yield* claimOnce(directory, machine, seen)
    if (name !== null) return Option.some(yield* hold(join(dirname(directory), name)))
    if (yield* isThere) return Option.none()
    yield* onWait
    yield* Effect.sleep(lookMillis + (yield* Random.nextIntBetween(0, lookMillis)))
  }
})

/** Removes what dead downloads of `directory` left, once it is there. */
export const removeAbandoned = Effect.fnUntraced(function* (directory: string) {
  const machine = yield* here
  const seen: Seen = new Map()
  for (const name of yield* listPartial(directory)) {
    if (yield* isAbandoned(dirname(directory), name, machine, seen)) {
      yield* onDisk(() => rm(join(dirname(directory), name), { recursive: true, force: true }))
    }
  }
})
