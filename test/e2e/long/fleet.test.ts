import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { ModelScaling } from "@seatrial/domain"
import { engineWire } from "@seatrial/engines"
import { Pod } from "@seatrial/kube"
import { gauge } from "@seatrial/trial"
import { Effect, Schema } from "effect"
import { bodyOf } from "../Caller.ts"
import { runCommand } from "../ChildProgram.ts"
import { patiently } from "../cluster.ts"
import { readyEngines } from "../engines.ts"
import { eventually } from "../eventually.ts"
import { keepCalling } from "../keepCalling.ts"
import { processesOf } from "../processesOf.ts"
import { Served } from "../Served.ts"

const namespace = "seatrial"

/** Tokens that the engine has generated since its start. */
const tokensOf = (pod: Pod) =>
  Effect.promise(async () => {
    const response = await fetch(`http://${pod.status?.podIP}:${pod.spec?.containers[0]?.ports?.[0]?.containerPort}/metrics`)
    return gauge(await response.text(), engineWire("reference").trialMetrics.generatedTokens) ?? 0
  })

/** Kills the process of a pod's engine. Its container starts again in its pod. */
const killEngine = ({ metadata: { uid = "none" } }: Pod) =>
  Effect.sync(() => {
    const engines = processesOf(uid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("seatrial-reference-engine"))
    assert.strictEqual(engines.length, 1)
    for (const pid of engines) process.kill(pid, "SIGKILL")
  })

it.live(
  "a model with two engines serves with both; one that is killed or deleted is replaced and compared without a failed request; then it serves with one",
  () =>
    Effect.gen(function* () {
      const { caller, folder, kube, model, operation } = yield* Served
      const path = `/v1/models/${operation.model_id}/scaling`
      const scaled = yield* caller.call("PUT", path, { replicas: 2 })
      assert.deepStrictEqual([scaled.status, bodyOf(ModelScaling, scaled)], [200, { replicas: 2 }])
      const Progress = Schema.Struct({ message: Schema.String })
      const message = Effect.map(caller.call("GET", `/v1/deployments/${operation.id}/progress`), (answer) => bodyOf(Progress, answer).message)
      const bothServe = eventually("both engines serve", message, (text) => text === "Serves. 2 of 2 engines serve.")
      yield* bothServe
      const stop = yield* keepCalling(caller, model, 4)
      const engines = readyEngines(kube, operation.id)
      const both = yield* engines
      const generated = Effect.flatMap(engines, (pods) => Effect.forEach(pods, tokensOf))
      const before = yield* generated
      yield* eventually(
        "both engines generate tokens",
        generated,
        (now) => now.length === 2 && now.every((tokens, index) => tokens > (before[index] ?? 0) + 100)
      )

      const [first, second] = both
      assert.isDefined(first)
      assert.isDefined(second)
      yield* killEngine(second)
      yield* eventually("its traffic goes to the other one", message, (text) => text.endsWith("1 of 2 engines serve."))
      yield* bothServe
      // As a drain does: the engine finishes its requests before it ends.
      yield* patiently(kube.remove(Pod, first.metadata.name, namespace))
      yield* eventually(
        "a new first engine is ready",
        engines,
        (pods) => pods.length === 2 && pods.every(({ metadata }) => metadata.uid !== first.metadata.uid)
      )
      yield* bothServe

      yield* runCommand(["scale", model, "--replicas", "1"], { SEATRIAL_STATE: folder })
      yield* eventually("one engine is left", engines, (pods) => pods.length === 1 && pods[0]?.metadata.name === first.metadata.name)
      yield* eventually("the model serves with it", message, (text) => text === "Serves.")
      assert.isAbove((yield* stop).length, 100)
    }).pipe(Effect.provide(Served.layer), Effect.scoped),
  600_000
)
