import { type SentinelRow, Sentinels } from "@seatrial/store"
import { Cause, Effect, Latch, type Scope } from "effect"

/** How long a state waits for others, at most. */
const interval = "30 seconds"
/** States in one statement. */
const mostAtOnce = 1_000

export interface StateWriter {
  readonly put: (row: SentinelRow) => void
  /** The state of that pod that waits to be written. */
  readonly waiting: (podUid: string) => SentinelRow | undefined
  /** The pod is gone. */
  readonly remove: (podUid: string) => void
}

/** Writes the states of engines in batches, the last one of each. A new leader lacks the probes of the last batch. */
export const makeStateWriter = Effect.gen(function* (): Effect.fn.Return<StateWriter, never, Scope.Scope | Sentinels> {
  const store = yield* Sentinels
  const waiting = new Map<string, SentinelRow>()
  const gone = new Set<string>()
  const isDue = yield* Latch.make(false)
  const write = Effect.gen(function* () {
    yield* isDue.await
    yield* Effect.sleep(interval)
    while (waiting.size + gone.size > 0) {
      const rows = [...waiting.values()].slice(0, mostAtOnce)
      const uids = [...gone].slice(0, mostAtOnce)
      yield* store.save(rows, uids)
      for (const row of rows) if (waiting.get(row.podUid) === row) waiting.delete(row.podUid)
      for (const uid of uids) gone.delete(uid)
    }
    yield* isDue.close
  })
  yield* write.pipe(
    Effect.catchCause((cause) => Effect.logWarning("the states of probed engines could not be written", Cause.pretty(cause))),
    Effect.forever,
    Effect.forkScoped
  )
  return {
    put: (row) => {
      waiting.set(row.podUid, row)
      isDue.openUnsafe()
    },
    waiting: (podUid) => waiting.get(podUid),
    remove: (podUid) => {
      waiting.delete(podUid)
      gone.add(podUid)
      isDue.openUnsafe()
    }
  }
})
