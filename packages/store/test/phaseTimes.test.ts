import { assert, it } from "@effect/vitest"
import type { DeploymentId } from "@seatrial/domain"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { type Caller, Deployments, ModelAdmin, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { makeCaller, newModel, walk } from "./support/index.ts"

const start = Date.UTC(2030, 0, 15)

/** The ways in which a run can end, each with its own clock. */
const ends = {
  cancelled: ({ orgId, userId }: Caller, id: DeploymentId) => Effect.flatMap(Deployments, (deployments) => deployments.cancel(orgId, id, userId)),
  failed: ({ orgId }: Caller, id: DeploymentId) => Effect.flatMap(Runs, (runs) => runs.enter({ id, orgId, from: "activating", to: "failed", reason: "Test" })),
  activated: ({ orgId }: Caller, id: DeploymentId) => Effect.flatMap(Runs, (runs) => runs.activate({ id, orgId, from: "activating" })),
  deleted: ({ orgId }: Caller, id: DeploymentId) =>
    Effect.gen(function* () {
      const run = Option.getOrThrow(yield* (yield* Runs).observe(id))
      return yield* (yield* ModelAdmin).remove(orgId, run.modelId)
    })
}

const layerAll = ModelAdmin.layerSql.pipe(Layer.provideMerge(layerStore))

it.effect("no phase begins before the phase that it follows, even if the clocks of the writers differ", () =>
  Effect.gen(function* () {
    const deployments = yield* Deployments
    const { caller } = yield* makeCaller("clocks")
    for (const [name, end] of Object.entries(ends)) {
      yield* TestClock.setTime(start + 60_000)
      const { id } = yield* deployments.create(newModel(caller, name, name))
      yield* walk(caller, id, "booting")
      // The following writers have a clock that is a minute behind.
      yield* TestClock.setTime(start)
      yield* walk(caller, id, "activating")
      yield* end(caller, id)
      const detail = Option.getOrThrow(yield* deployments.find(caller.orgId, id))
      const last = new Date(start + 60_000).toISOString()
      assert.isTrue(
        detail.phases.every(({ at }) => at === last),
        `${name}: ${JSON.stringify(detail.phases)}`
      )
      assert.deepStrictEqual([detail.created_at, detail.updated_at, detail.ended_at], [last, last, last], name)
    }
  }).pipe(Effect.provide(layerAll), (test) => Effect.andThen(TestClock.setTime(start), test))
)
