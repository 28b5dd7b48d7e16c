import type { PgClient } from "@effect/sql-pg"
import { Effect, PubSub, Schedule, Semaphore, Stream } from "effect"
import { listen } from "../listen.ts"
import { makeOutageLog } from "../outageLog.ts"
import type { AbsentNames } from "./AbsentNames.ts"
import { makeReadSnapshot, type Snapshot } from "./readSnapshot.ts"

/** Shares reads: requests during a read share the next one, so that at most one is queued. */
const shareReads = <E>(reload: Effect.Effect<void, E>, turn: Semaphore.Semaphore) => {
  let requestedReads = 0
  let served = 0
  return Effect.suspend(() => {
    const own = ++requestedReads
    return turn.withPermits(1)(
      Effect.suspend(() => {
        if (served >= own) return Effect.void
        const all = requestedReads
        const settle = Effect.sync(() => {
          served = all
        })
        // A failed read also counts for all requests that shared it.
        return reload.pipe(
          Effect.tap(() => settle),
          Effect.tapError(() => settle)
        )
      })
    )
  })
}

/** Keeps a copy of all routes current by notifications. `snapshots` emits each copy. */
export const keepSnapshot = Effect.fnUntraced(function* (sql: PgClient.PgClient, absent: AbsentNames) {
  const read = makeReadSnapshot(sql)
  const log = makeOutageLog("Could not read the routes; using the previous ones")
  const copy = { current: yield* Effect.orDie(read) }
  const snapshots = yield* PubSub.sliding<Snapshot>({ capacity: 1, replay: 1 })
  yield* PubSub.publish(snapshots, copy.current)
  const reload = Effect.gen(function* () {
    copy.current = yield* read
    yield* PubSub.publish(snapshots, copy.current)
  })
  // Serializes reads, so that an earlier read never replaces a later one.
  const turn = yield* Semaphore.make(1)
  // Changes during a read cause one more read.
  yield* listen(sql, "routes").pipe(
    Stream.tap(({ _tag }) => Effect.sync(() => absent.clear(_tag !== "Lost"))),
    Stream.filter(({ _tag }) => _tag !== "Lost"),
    Stream.buffer({ capacity: 1, strategy: "sliding" }),
    Stream.runForEach(() =>
      turn
        .withPermits(1)(reload)
        .pipe(Effect.tapCause(log), Effect.retry(Schedule.spaced("500 millis")), Effect.orDie)
    ),
    Effect.forkScoped
  )

  return Object.assign(copy, { reloadShared: shareReads(reload, turn), snapshots })
})
