import { assert, it } from "@effect/vitest"
import { ModelLoad, ModelScaling } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { bodyOf } from "../Caller.ts"
import { runCommand } from "../ChildProgram.ts"
import { eventually } from "../eventually.ts"
import { keepCalling } from "../keepCalling.ts"
import { Served, serving } from "../Served.ts"

it.live(
  "load raises the number of engines, and its absence lowers it, without a failed request",
  () =>
    Effect.gen(function* () {
      const { caller, folder, model, operation } = yield* Served
      // An engine with two slots, so that few clients exceed its capacity.
      const { id } = yield* caller.deploy({ model_id: operation.model_id, serving: { ...serving, engine_flags: { max_num_seqs: 2 } } })
      assert.strictEqual((yield* caller.finished(id)).status, "activated")
      const path = `/v1/models/${operation.model_id}`
      const load = Effect.map(caller.call("GET", `${path}/load`), (answer) => bodyOf(ModelLoad, answer))
      const { capacity } = yield* eventually("its engine serves", load, ({ ready }) => ready === 1)
      assert.include([1, 2], capacity?.requests)
      const scaled = yield* caller.call("PUT", `${path}/scaling`, { min_replicas: 1, max_replicas: 2, target: 1 })
      assert.deepStrictEqual(bodyOf(ModelScaling, scaled), { replicas: 1, min_replicas: 1, max_replicas: 2, target: 1 })

      // One client is enough load for a second engine if an engine has a capacity of one request.
      const few = capacity?.requests === 1 ? 0 : 1
      const stopFew = yield* keepCalling(caller, model, few)
      const stopMany = yield* keepCalling(caller, model, 6)
      yield* eventually("two engines serve", load, ({ desired, ready }) => desired === 2 && ready === 2)
      yield* eventually("both have requests", load, (now) => now.engines.every(({ running }) => running > 0))
      const lines = yield* runCommand(["top", model], { SEATRIAL_STATE: folder })
      assert.strictEqual(lines.match(/-engine-[01]\b/g)?.length, 2, lines)

      assert.isAbove((yield* stopMany).length, 50)
      yield* eventually("one engine is wanted", load, ({ desired }) => desired === 1)
      const Progress = Schema.Struct({ message: Schema.String })
      const message = Effect.map(caller.call("GET", `/v1/deployments/${id}/progress`), (answer) => bodyOf(Progress, answer).message)
      yield* eventually("the model serves with it", message, (text) => text === "Serves.")
      assert.isAtLeast((yield* stopFew).length, 50 * few)
    }).pipe(Effect.provide(Served.layer), Effect.scoped),
  900_000
)
