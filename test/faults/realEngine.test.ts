import { assert, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import { makeCaller } from "../e2e/Caller.ts"
import { type ChildProgram, startProgram } from "../e2e/ChildProgram.ts"
import { objectsOfRuns, openCluster, shortenBenchmark } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { makeStateFolder, startSystem } from "../e2e/LocalSystem.ts"
import { serving, source } from "../e2e/Served.ts"
import { drawsOf } from "./Draw.ts"

const rollOuts = Number(process.env.SEATRIAL_FAULT_REAL ?? 2)
const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)

it.live(
  `${rollOuts} roll-outs from seed ${first} with engines that compute, their checks and node agents, while operators are killed: every request is answered`,
  () =>
    Effect.gen(function* () {
      const { state } = yield* startSystem(yield* makeStateFolder, { SEATRIAL_DURABLE: "false", SEATRIAL_PROGRAMS: "server,gateway" })
      const kube = yield* openCluster(state.kubeconfig)
      const caller = makeCaller(state.address, state.api_key)
      const startOperator = startProgram(["packages/cli/src/main.ts", "operator"], {
        DATABASE_URL: state.database_url,
        KUBECONFIG: state.kubeconfig,
        HF_ENDPOINT: state.hub,
        SEATRIAL_ENCRYPTION_KEY: state.encryption_key,
        OPERATOR_LEASE_SECONDS: "3",
        OPERATOR_PORT: "0"
      })
      const operator = yield* Ref.make<ChildProgram>(yield* startOperator)
      yield* shortenBenchmark(kube)
      yield* eventually("the operator has reported its host classes", caller.call("POST", "/v1/deployment-previews", { source, serving }), ({ text }) =>
        text.includes("derived")
      )
      const { id: initial, model_id } = yield* caller.deploy({ source, serving })
      const { model, status } = yield* caller.finished(initial)
      assert.strictEqual(status, "activated")
      const stop = yield* keepAsking(caller, model)
      for (let seed = first; seed < first + rollOuts; seed++) {
        const draw = drawsOf(seed)
        const { id } = yield* caller.deploy({ model_id, serving: { ...serving, max_context: 256 + (seed % 256) } })
        for (let deaths = draw.integer(1, 3); deaths > 0; deaths--) {
          yield* Effect.sleep(draw.between(200, 4_000))
          const killed = yield* Ref.get(operator)
          yield* killed.signal("SIGKILL")
          assert.strictEqual(yield* killed.exited, "SIGKILL")
          yield* Ref.set(operator, yield* startOperator)
        }
        const ended = yield* caller.finished(id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null], `seed ${seed}`)
        inOrder(ended)
        assert.isTrue(ended.checks.length > 0 && ended.checks.every(({ passed }) => passed), `seed ${seed}`)
        yield* eventually("the cluster holds the engine that serves and nothing else", objectsOfRuns(kube), (objects) => objects.join() === `Pod ${id}`)
        yield* Effect.logInfo(`seed ${seed}: ${id}`)
      }
      assert.isAbove((yield* stop).length, 0)
    }).pipe(Effect.scoped),
  1_200_000
)
