import { assert, it } from "@effect/vitest"
import { SampleHub } from "@seatrial/local"
import { Context, Effect, Layer } from "effect"
import { makeCaller } from "../Caller.ts"
import { ask, wholeOf } from "../chat.ts"
import { objectsOfRuns, openCluster, shortenBenchmark } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { processesOf } from "../processesOf.ts"
import { serving, source } from "../Served.ts"

it.live(
  "a killed system resumes its run after a restart; a stopped system leaves no process and serves again after a restart",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      // The first download stalls, so that the system is killed during it.
      let stalled = false
      const hub = SampleHub.layer({
        port: 0,
        faults: ({ file, range }) => {
          // Screening reads only the beginning.
          if (stalled || file !== "model.safetensors" || Number(range?.split("-")[1]) < 1_000_000) return undefined
          stalled = true
          return { kind: "stall", after: 100_000 }
        }
      })
      const { address: HF_ENDPOINT } = Context.get(yield* Layer.build(hub), SampleHub)
      const start = Effect.map(startSystem(folder, { HF_ENDPOINT, OPERATOR_LEASE_SECONDS: "3" }), ({ program, state }) => ({
        program,
        state,
        caller: makeCaller(state.address, state.api_key)
      }))

      const first = yield* start
      yield* shortenBenchmark(yield* openCluster(first.state.kubeconfig))
      const { id } = yield* first.caller.deploy({ source, serving })
      yield* eventually(
        "the download has begun",
        Effect.sync(() => stalled),
        (yes) => yes
      )
      yield* first.caller.until(id, "is in materializing", ({ status }) => status === "materializing")
      yield* first.program.signal("SIGKILL")
      yield* first.program.exited

      const second = yield* start
      assert.strictEqual(second.state.api_key, first.state.api_key)
      yield* second.caller.until(id, "is in checking", ({ status }) => status === "checking")
      yield* second.program.signal("SIGKILL")
      yield* second.program.exited

      const third = yield* start
      const ended = yield* third.caller.finished(id)
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      const phases = ended.phases.map(({ status }) => status)
      assert.deepStrictEqual([phases.at(0), phases.at(-1), new Set(phases).size], ["screening", "activated", phases.length])
      const before = wholeOf(yield* ask(third.caller, ended.model)).text
      const kube = yield* openCluster(third.state.kubeconfig)
      yield* eventually("the cluster holds the serving engine and nothing else", objectsOfRuns(kube), (objects) => objects.join() === `Pod ${id}`)
      yield* third.program.signal("SIGINT")
      assert.strictEqual(yield* third.program.exited, 130)
      assert.deepStrictEqual(processesOf(folder), [])

      const { caller, state } = yield* start
      assert.strictEqual(state.api_key, first.state.api_key)
      assert.deepStrictEqual(yield* caller.deployment(id), ended)
      const again = yield* eventually("the model serves again", ask(caller, ended.model), ({ status }) => status === 200)
      assert.strictEqual(wholeOf(again).text, before)
    }).pipe(Effect.scoped),
  600_000
)
