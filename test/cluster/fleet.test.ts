import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect, Layer, Redacted } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving } from "../e2e/Served.ts"
import { askThroughout as askGateway } from "../faults/askThroughout.ts"
import { countedOnce } from "../faults/countedOnce.ts"
import { selectIn } from "../faults/select.ts"
import { openGateways } from "../faults/twoGateways.ts"
import { watchRoutes } from "../faults/watchRoutes.ts"
import { askThroughout } from "./askThroughout.ts"
import { type FaultStage, openFaultStage } from "./FaultStage.ts"
import { recordedVerdicts } from "./recordedVerdicts.ts"

/** SEATRIAL_CLUSTER_FLEET_ROLLOUTS: how many roll-outs. Every other one has a death of the operator, after one more write each time. */
const count = Number(process.env.SEATRIAL_CLUSTER_FLEET_ROLLOUTS ?? 1)
const engines = 4
/** SEATRIAL_CLUSTER_FLEET_DEATHS: deaths of the operator and of gateways in steps of the number of engines: four after the first write of a step, four after the second, and so on. */
const deaths = Number(process.env.SEATRIAL_CLUSTER_FLEET_DEATHS ?? 2)

/** The program that dies. Steps to fewer and to more engines take turns, so that each program dies in both. */
const victims = ["operator", "gateway", "gateway", "operator"] as const

/** Engines of the model that exist at once during a roll-out: one more than wanted, and at most two that end. */
const mostEngines = engines + 1 + 2

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

const noneFailed = ({ answered, failures }: { readonly answered: number; readonly failures: ReadonlyArray<string> }) => {
  assert.deepStrictEqual(failures, [])
  assert.isAbove(answered, 10)
  return Effect.logInfo(`${answered} answers, none failed`)
}

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

/** Scales down and up while the operator or a gateway dies. Only requests that were open at a gateway when it died may fail. */
const scaleThroughDeaths = Effect.fnUntraced(function* (stage: FaultStage, run: string) {
  const gateways = yield* openGateways(stage.system, stage.model)
  const stop = yield* askGateway(gateways.caller, stage.model)
  let inSteps = 0
  for (let death = 0; death < deaths; death++) {
    const replicas = death % 2 === 0 ? engines - 2 : engines
    const victim = victims[death % victims.length]
    const writes = 1 + Math.floor(death / victims.length)
    yield* scale(stage, replicas)
    const isInStep = yield* Effect.raceFirst(Effect.as(stage.afterWrites(writes), true), Effect.as(settled(stage, run, replicas), false))
    yield* victim === "operator" ? stage.replaceOperator : Effect.andThen(gateways.kill, gateways.replace)
    yield* settled(stage, run, replicas)
    if (isInStep) inSteps++
    yield* Effect.logInfo(`death ${death + 1} of ${deaths}: ${victim}, to ${replicas} engines, after ${isInStep ? `write ${writes}` : "the step"}`)
  }
  // A step has few writes, and the first ones were met.
  assert.isAtLeast(inSteps, Math.min(deaths, victims.length))
  const { answers, failures } = yield* stop
  gateways.assertFailures(failures)
  assert.isAbove(answers.length, 0)
}, Effect.scoped)

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
  yield* noneFailed(yield* stop)
})

/** The nodes are drained in turn, as for an upgrade. Their engines continue on the other one. */
const drainNodes = Effect.fnUntraced(function* (stage: FaultStage, run: string) {
  const kubectl = (...args: ReadonlyArray<string>) => stage.cluster.command("kubectl", args)
  const stop = yield* askThroughout(stage)
  for (const node of ["sim-0", "sim-1"]) {
    yield* kubectl("drain", node, "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=300s")
    yield* settled(stage, run, engines)
    assert.notInclude(yield* nodesOf(stage, run), node)
    yield* kubectl("uncordon", node)
  }
  yield* noneFailed(yield* stop)
})

/** Watches which engines get traffic. Operators record their decisions a second later, so that a death loses the last ones. */
const watchStage = Effect.fnUntraced(function* ({ operatorDeaths, system }: FaultStage) {
  const select = selectIn(yield* Layer.build(PgClient.layer({ url: Redacted.make(system.databaseUrl), maxConnections: 1 })))
  const isRecordLost = (at: number) => operatorDeaths.some((death) => death - 5_000 < at && at <= death)
  return { select, everyRouteVerified: yield* watchRoutes({ select, verified: recordedVerdicts(select), isRecordLost }) }
})

/** The API server is away while the number changes, for a shorter and a longer time than the lease of the operator. */
const scaleWithoutApiServer = Effect.fnUntraced(function* (stage: FaultStage, run: string) {
  const { cluster } = stage
  const stop = yield* askThroughout(stage)
  for (const [replicas, outage] of [
    [engines - 1, "2 seconds"],
    [engines, "8 seconds"]
  ] as const) {
    yield* cluster.kill("kube-apiserver")
    yield* scale(stage, replicas)
    yield* Effect.sleep(outage)
    yield* cluster.start("kube-apiserver")
    yield* settled(stage, run, replicas)
  }
  yield* noneFailed(yield* stop)
})

it.live(
  `on a real control plane ${count} roll-outs of ${engines} engines, scaling while the operator or a gateway dies or the API server is away, drained nodes and a lost node fail no request, but for those open at a gateway that dies`,
  () =>
    Effect.gen(function* () {
      const stage = yield* openFaultStage
      const { cluster } = stage
      yield* cluster.command("kubectl", ["patch", "hostclass", "sim-small", "--type=merge", "-p", '{"spec":{"drainSeconds":2}}'])
      const { everyRouteVerified, select } = yield* watchStage(stage)
      let run = stage.run
      yield* scale(stage, engines)
      yield* settled(stage, run, engines)
      const stop = yield* askThroughout(stage)
      for (let index = 0; index < count; index++) {
        run = yield* rollOut(stage, run, index)
        yield* Effect.logInfo(`roll-out ${index + 1} of ${count}`)
      }

      const rolledOutAt = Date.now()
      yield* scaleThroughDeaths(stage, run)
      yield* noneFailed(yield* stop)
      yield* drainNodes(stage, run)
      yield* scale(stage, engines - 1)
      yield* settled(stage, run, engines - 1)
      yield* loseNode(stage, run, engines)
      yield* scaleWithoutApiServer(stage, run)
      const verified = yield* everyRouteVerified
      assert.isAtLeast(verified, engines * (count + 1))
      yield* Effect.logInfo(`${verified} engines were verified before they got traffic`)
      yield* countedOnce(select, mostEngines)
      yield* countedOnce(select, engines, rolledOutAt)
    }).pipe(Effect.scoped),
  600_000 + count * 300_000 + deaths * 60_000
)
