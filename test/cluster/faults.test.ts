import { assert, it } from "@effect/vitest"
import { canEnter, type DeploymentDetail, type Phase } from "@seatrial/domain"
import { Effect } from "effect"
import { makeCaller } from "../e2e/Caller.ts"
import { type ChildProgram, startProgram } from "../e2e/ChildProgram.ts"
import { objectsOfRuns } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { makeStateFolder, startSystem } from "../e2e/LocalSystem.ts"
import { serving, source } from "../e2e/Served.ts"
import { startRealCluster } from "./RealCluster.ts"

const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
const seeds = Array.from({ length: Number(process.env.SEATRIAL_FAULT_ROLLOUTS ?? 2) }, (_, index) => first + index)

const inOrder = ({ phases }: DeploymentDetail) => {
  let requeues = 0
  let from: Phase = "screening"
  for (const { status: to } of phases.slice(1)) {
    assert.isTrue(canEnter(from, to, requeues), `${from} to ${to}`)
    if (to === "queued" && (from === "provisioning" || from === "booting")) requeues++
    from = to
  }
}

it.live(
  "on a real control plane a roll-out survives the deaths of the operator, the API server and etcd, and who asks meanwhile is always answered",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const { state } = yield* startSystem(yield* makeStateFolder, {
        SEATRIAL_DURABLE: "false",
        SEATRIAL_PROGRAMS: "server,gateway",
        KUBECONFIG: cluster.kubeconfig
      })
      const startOperator = startProgram(["packages/cli/src/main.ts", "operator"], {
        KUBECONFIG: cluster.operator,
        DATABASE_URL: state.database_url,
        SEATRIAL_ENCRYPTION_KEY: state.encryption_key,
        HF_ENDPOINT: state.hub,
        OPERATOR_LEASE_SECONDS: "3",
        OPERATOR_PORT: "0"
      })
      let operator: ChildProgram = yield* startOperator
      const caller = makeCaller(state.address, state.api_key)
      const preview = caller.call("POST", "/v1/deployment-previews", { source, serving })
      yield* eventually("the operator has told of its host class", preview, ({ text }) => text.includes("derived"))
      const served = yield* caller.finished((yield* caller.deploy({ source, serving })).id)
      assert.deepStrictEqual([served.status, served.failure_detail], ["activated", null])

      const stop = yield* keepAsking(caller, served.model)
      const phases = ["screening", "materializing", "booting", "checking", "benchmarking", "activating"]
      for (const seed of seeds) {
        const run = yield* caller.deploy({ model_id: served.model_id, serving: { ...serving, max_context: 256 + seed } })
        // Which dies in which phase follows from the seed; each dies once.
        const dies = [0, 2, 4].map((offset) => phases[(seed + offset) % phases.length] ?? "booting")
        const reached = (phase: string) =>
          caller.until(run.id, `has come to ${phase}`, ({ phases: passed, status }) => passed.some((one) => one.status === phase) || status === "failed")
        const deaths = [
          Effect.gen(function* () {
            yield* operator.signal("SIGKILL")
            yield* operator.exited
            operator = yield* startOperator
          }),
          Effect.gen(function* () {
            yield* cluster.kill("kube-apiserver")
            yield* Effect.sleep("1 second")
            yield* cluster.start("kube-apiserver")
          }),
          Effect.gen(function* () {
            yield* cluster.kill("etcd")
            yield* cluster.start("etcd")
          })
        ]
        // In the order of the phases, so that one question at a time follows the run.
        const order = deaths
          .map((death, index) => ({ death, phase: dies[index] ?? "booting" }))
          .sort((one, other) => phases.indexOf(one.phase) - phases.indexOf(other.phase))
        for (const { death, phase } of order) yield* Effect.andThen(reached(phase), death)
        const ended = yield* caller.finished(run.id).pipe(Effect.tapCause(() => Effect.logError(operator.said())))
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null], `seed ${seed}: ${dies.join()}`)
        inOrder(ended)
        yield* eventually("the cluster holds the serving engine and nothing else", objectsOfRuns(cluster.kube), (objects) => objects.join() === `Pod ${run.id}`)
      }
      const answers = yield* stop
      assert.isAbove(answers.length, 0)
    }).pipe(Effect.scoped),
  1_200_000
)
