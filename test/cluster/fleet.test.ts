import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving } from "../e2e/Served.ts"
import { askThroughout } from "./askThroughout.ts"
import { type FaultStage, openFaultStage } from "./FaultStage.ts"

/** SEATRIAL_CLUSTER_FLEET_ROLLOUTS: how many roll-outs. Every other one has a death of the operator, after one more write each time. */
const count = Number(process.env.SEATRIAL_CLUSTER_FLEET_ROLLOUTS ?? 1)
const engines = 4
/** Deaths of the operator in steps of the number of engines, after one more write each time. */
const deaths = Number(process.env.SEATRIAL_CLUSTER_FLEET_DEATHS ?? 2)

const objectOf = (run: string) => run.replaceAll("_", "-")

/** The nodes of the run's engines, of those too that end. */
const nodesOf = ({ cluster: { kube, namespace } }: FaultStage, run: string) =>
  Effect.map(patiently(kube.list(Pod, { namespace, labelSelector: `seatrial.dev/deployment=${run},seatrial.dev/role=engine` })), (pods) =>
    pods.map(({ spec }) => spec?.nodeName)
  )
const podsOf = (stage: FaultStage, run: string) => Effect.map(nodesOf(stage, run), ({ length }) => length)

/** Waits until the run has this number of engines with traffic, and no other. */
const settled = Effect.fnUntraced(function* (stage: FaultStage, run: string, replicas: number) {
  const { cluster, operator } = stage
  const path = "jsonpath={.status.desiredReplicas} {.status.replicas} {.status.readyReplicas}"
  const numbers = Effect.orElseSucceed(cluster.command("kubectl", ["get", "mdep", objectOf(run), `--namespace=${cluster.namespace}`, "-o", path]), () => "")
  const wanted = `${replicas} ${replicas} ${replicas}`
  yield* eventually(`${run} shows ${wanted}`, numbers, (now) => now === wanted).pipe(Effect.tapCause(() => Effect.logError(operator().output())))
  yield* eventually(`${run} has ${replicas} pods`, podsOf(stage, run), (now) => now === replicas)
})

const scale = Effect.fnUntraced(function* ({ caller, modelId }: FaultStage, replicas: number) {
  assert.strictEqual((yield* caller.call("PUT", `/v1/models/${modelId}/scaling`, { replicas })).status, 200)
})

/** Moves the model to a revision with another context, and waits until only that one has engines. Returns the new run. */
const rollOut = Effect.fnUntraced(function* (stage: FaultStage, earlier: string, index: number) {
  const { caller, modelId } = stage
  const { id } = yield* caller.deploy({ model_id: modelId, serving: { ...serving, max_context: serving.max_context - 1 - index } })
  const over = caller.finished(id)
  if (index % 2 === 1) yield* Effect.raceFirst(Effect.andThen(stage.afterWrites(index), stage.replaceOperator), Effect.asVoid(over))
  const { failure_detail, status } = yield* over
  assert.deepStrictEqual([status, failure_detail], ["activated", null])
  yield* settled(stage, id, engines)
  yield* eventually("the earlier revision has no engine", podsOf(stage, earlier), (now) => now === 0)
  return id
})

/** One of the engines runs on a node that fails without a word. Streams end there; all other requests are answered. */
const loseNode = Effect.fnUntraced(function* (stage: FaultStage, run: string, replicas: number) {
  const kubectl = (...args: ReadonlyArray<string>) => stage.cluster.command("kubectl", args)
  const stopNode = yield* stage.cluster.startNode("doomed")
  yield* kubectl("cordon", "sim-0", "sim-1")
  yield* scale(stage, replicas)
  yield* settled(stage, run, replicas)
  yield* kubectl("uncordon", "sim-0", "sim-1")
  assert.include(yield* nodesOf(stage, run), "doomed")
  const stop = yield* askThroughout(stage, [false, false])
  yield* stopNode
  yield* eventually("its engine runs on another node", nodesOf(stage, run), (nodes) => nodes.length === replicas && !nodes.includes("doomed"))
  yield* settled(stage, run, replicas)
  const { answered, failures } = yield* stop
  assert.deepStrictEqual(failures, [])
  assert.isAbove(answered, 10)
})

it.live(
  `on a real control plane ${count} roll-outs of ${engines} engines, scaling while the operator dies and the API server is away, and a lost node fail no request`,
  () =>
    Effect.gen(function* () {
      const stage = yield* openFaultStage
      const { cluster } = stage
      yield* cluster.command("kubectl", ["patch", "hostclass", "sim-small", "--type=merge", "-p", '{"spec":{"drainSeconds":2}}'])
      let run = stage.run
      yield* scale(stage, engines)
      yield* settled(stage, run, engines)
      const stop = yield* askThroughout(stage)
      for (let index = 0; index < count; index++) {
        run = yield* rollOut(stage, run, index)
        yield* Effect.logInfo(`roll-out ${index + 1} of ${count}`)
      }

      for (let death = 0; death < deaths; death++) {
        const replicas = death % 2 === 0 ? engines - 2 : engines
        yield* scale(stage, replicas)
        yield* Effect.raceFirst(stage.afterWrites(1 + Math.floor(death / 2)), settled(stage, run, replicas))
        yield* stage.replaceOperator
        yield* settled(stage, run, replicas)
      }

      yield* cluster.kill("kube-apiserver")
      yield* scale(stage, engines - 1)
      yield* Effect.sleep("2 seconds")
      yield* cluster.start("kube-apiserver")
      yield* settled(stage, run, engines - 1)
      const { answered, failures } = yield* stop
      assert.deepStrictEqual(failures, [])
      assert.isAbove(answered, 10)
      yield* Effect.logInfo(`${answered} answers, none failed`)
      yield* loseNode(stage, run, engines)
    }).pipe(Effect.scoped),
  600_000 + count * 300_000 + deaths * 60_000
)
