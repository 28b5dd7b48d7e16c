import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { Select } from "./select.ts"

/** Holds of pods of one name that overlap. Times of placements in Kubernetes are complete seconds. */
const twice = `
  SELECT one.pod, one.pod_uid, other.pod_uid FROM gpu_holds one JOIN gpu_holds other USING (pod)
  WHERE one.pod_uid <> other.pod_uid AND one.placed_at <= other.placed_at
    AND coalesce(one.released_at, 'infinity') > other.placed_at + interval '1 second'`

/** The most GPUs that were held at once, by all pods, since a time in Unix milliseconds. */
const peak = (since: number) => `
  SELECT coalesce(sum(held.gpus), 0)::int AS gpus, array_agg(held.pod ORDER BY held.pod) AS pods FROM gpu_holds placed JOIN gpu_holds held
    ON held.placed_at <= placed.placed_at AND coalesce(held.released_at, 'infinity') > placed.placed_at + interval '1 second'
  WHERE placed.placed_at >= to_timestamp(${since / 1_000})
  GROUP BY placed.pod_uid ORDER BY gpus DESC LIMIT 1`
const Peak = Schema.Array(Schema.Struct({ gpus: Schema.Int, pods: Schema.Array(Schema.String) }))

/**
 * Asserts that no GPU was counted twice. `most`: how many GPUs may be held at once since `since` (Unix milliseconds): those
 * of all engines that a step may have, with engines that end.
 */
export const countedOnce = (select: Select, most: number, since = 0) =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* select(Schema.Array(Schema.Unknown), twice), [])
    const [{ gpus, pods } = { gpus: 0, pods: [] }] = yield* select(Peak, peak(since))
    assert.isAtMost(gpus, most, pods.join())
    yield* Effect.logInfo(`at most ${gpus} GPUs were held at once, of ${most} that may be`)
  })
