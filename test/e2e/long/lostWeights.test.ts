import { readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import { enginePodName } from "@seatrial/operator"
import { Effect, Schema } from "effect"
import { ask, wholeOf } from "../chat.ts"
import { eventually } from "../eventually.ts"
import { openSystem } from "../openSystem.ts"
import { serving, source } from "../Served.ts"
import { commitsIn, startAgain } from "../startAgain.ts"

const decodeId = Schema.decodeUnknownSync(DeploymentId)

it.live(
  "weights lost from the store are downloaded again by the next run that needs them, while the serving engine continues, or by the serving engine when it restarts",
  () =>
    Effect.gen(function* () {
      const { folder, caller, kube } = yield* openSystem("sim-small")
      yield* eventually(
        "the operator has reported its host classes",
        caller.call("POST", "/v1/deployment-previews", { source, serving }),
        ({ status }) => status === 200
      )
      const deploy = Effect.fnUntraced(function* (model_name: string) {
        const { id } = yield* caller.deploy({ source, serving, model_name })
        const ended = yield* caller.finished(id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        return { id, model: ended.model, phases: ended.phases.map(({ status }) => status) }
      })
      const answers = (model: string) =>
        Effect.map(
          eventually(`${model} answers`, ask(caller, model), ({ status }) => status === 200),
          (answer) => assert.isNotEmpty(wholeOf(answer).text)
        )
      const contents = (path: string) => Effect.promise(() => readFile(join(path, "model.safetensors")))

      const first = yield* deploy("first")
      assert.include(first.phases, "materializing")
      const [store = "", ...others] = yield* Effect.promise(() => commitsIn(folder))
      assert.isEmpty(others)
      const originalContents = yield* contents(store)

      yield* Effect.promise(() => rm(store, { recursive: true }))
      const second = yield* deploy("second")
      // The weights were recorded as stored, so the run did not download them until the engine did not find them.
      assert.notInclude(second.phases, "materializing")
      assert.isTrue(originalContents.equals(yield* contents(store)))
      yield* answers(first.model)
      yield* answers(second.model)

      yield* Effect.promise(() => rm(store, { recursive: true }))
      yield* startAgain(kube, enginePodName(decodeId(first.id)))
      assert.isTrue(originalContents.equals(yield* contents(store)))
      yield* answers(first.model)
    }).pipe(Effect.scoped),
  600_000
)
