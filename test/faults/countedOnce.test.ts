import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Deployments, GpuHolds, Organizations } from "@seatrial/store"
import { layerTestDatabase, makeCaller, newModel } from "@seatrial/store/testing"
import { Effect, Exit, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { countedOnce } from "./countedOnce.ts"
import { selectIn } from "./select.ts"

const layerStore = Layer.mergeAll(GpuHolds.layerSql, Deployments.layerSql, Organizations.layerSql, ApiKeys.layerSql).pipe(
  Layer.provideMerge([Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))), Ids.layer])
)

/** A pod with a GPU. Times are seconds; null: it still has it. */
const held = (pod: string, placed: number, released: number | null = null) => ({ pod, placed, released })

const cases: ReadonlyArray<readonly [what: string, isFound: boolean, holds: ReadonlyArray<ReturnType<typeof held>>]> = [
  ["two engines at once, of two that may be", false, [held("a-0", 0), held("a-1", 0)]],
  ["a third one while both have GPUs", true, [held("a-0", 0), held("a-1", 0), held("a-2", 5)]],
  ["a third one that has ended since", true, [held("a-0", 0, 100), held("a-1", 0, 100), held("b-0", 5, 50)]],
  ["a third one after one has ended", false, [held("a-0", 0, 5), held("a-1", 0), held("b-0", 5)]],
  ["another pod of the same name while the first one has its GPU", true, [held("a-0", 0, 10), held("a-0", 5)]],
  ["another pod of the same name afterwards", false, [held("a-0", 0, 5), held("a-0", 5)]]
]

layer(layerStore, { excludeTestServices: true })("the check that no GPU was counted twice", (it) => {
  for (const [index, [what, isFound, pods]] of cases.entries())
    it.effect(`${isFound ? "finds" : "allows"} ${what}`, () =>
      Effect.gen(function* () {
        const [holds, sql] = [yield* GpuHolds, yield* PgClient.PgClient]
        const { caller } = yield* makeCaller(`counted-${index}`)
        const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
        const start = Date.parse("2026-03-01T00:00:00Z")
        yield* sql`DELETE FROM gpu_holds`
        for (const [place, { placed, pod, released }] of pods.entries()) {
          const podUid = `${index}-${place}`
          yield* holds.place({ podUid, pod, deploymentId: id, hostClass: "local", gpus: 1, pricePerGpuHour: 0n, placedAt: start + placed * 1_000 })
          if (released !== null) yield* holds.release(podUid, start + released * 1_000)
        }
        const select = selectIn(yield* Effect.context<SqlClient.SqlClient>())
        assert.strictEqual(Exit.isFailure(yield* Effect.exit(countedOnce(select, 2))), isFound)
        // Only moments since the given time count.
        const later = yield* Effect.exit(countedOnce(select, 0, start + 6_000))
        assert.strictEqual(Exit.isFailure(later), what.includes("same name while"))
      })
    )
})
