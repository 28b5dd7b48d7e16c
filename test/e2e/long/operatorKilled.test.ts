import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { DeploymentId, workingPhases } from "@seatrial/domain"
import { Node, Pod } from "@seatrial/kube"
import { enginePodName } from "@seatrial/operator"
import { Effect, Option, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { makeCaller } from "../Caller.ts"
import { type ChildProgram, startProgram } from "../ChildProgram.ts"
import { objectsOfRuns, openCluster, shortenBenchmark } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { makePhaseGate } from "../PhaseGate.ts"
import { serving, source } from "../Served.ts"

it.live(
  "a deployment whose operator is killed in each phase, before it can leave it, ends activated with each phase recorded once",
  () =>
    Effect.gen(function* () {
      const { state } = yield* startSystem(yield* makeStateFolder, { SEATRIAL_DURABLE: "false", SEATRIAL_PROGRAMS: "server,gateway" })
      const gate = yield* makePhaseGate(state.database_url)
      const kube = yield* openCluster(state.kubeconfig)
      const { call, deploy, deployment, finished, until } = makeCaller(state.address, state.api_key)
      const cordon = (unschedulable: boolean) => kube.mergePatch(Node, "sim-small-0", undefined, { spec: { unschedulable } })

      // A second operator is always on standby.
      const operators = new Map<string, ChildProgram>()
      let started = 0
      const startOperator = Effect.gen(function* () {
        const name = `operator-${++started}`
        operators.set(
          name,
          yield* startProgram(["packages/cli/src/main.ts", "operator"], {
            DATABASE_URL: state.database_url,
            DATABASE_APPLICATION_NAME: name,
            KUBECONFIG: state.kubeconfig,
            HF_ENDPOINT: state.hub,
            SEATRIAL_ENCRYPTION_KEY: state.encryption_key,
            OPERATOR_LEASE_SECONDS: "3",
            OPERATOR_PORT: "0"
          })
        )
      })
      yield* startOperator
      yield* shortenBenchmark(kube)

      // An older run of the model waits for GPUs, so this run waits for that one.
      yield* cordon(true)
      const first = eventually("the operator has reported its host classes", call("POST", "/v1/deployment-previews", { source, serving }), ({ text }) =>
        text.includes("derived")
      )
      const older = yield* Effect.andThen(first, deploy({ source, serving }))
      yield* until(older.id, "is queued", ({ status }) => status === "queued")

      yield* startOperator
      yield* gate.shut(Schema.decodeUnknownSync(DeploymentId)(older.id))
      const { id } = yield* deploy({ model_id: older.model_id, ref: "v1", serving })
      const killed: Array<string> = []
      for (const phase of workingPhases) {
        yield* until(id, `is in ${phase}`, ({ status }) => status === phase)
        if (phase === "waiting") yield* call("POST", `/v1/deployments/${older.id}/cancel`)
        if (phase === "queued") yield* cordon(false)
        const name = yield* gate.arrival(phase)
        const operator = operators.get(name)
        assert.isDefined(operator)
        assert.strictEqual((yield* deployment(id)).status, phase)
        yield* operator.signal("SIGKILL")
        assert.strictEqual(yield* operator.exited, "SIGKILL")
        yield* gate.open(phase)
        killed.push(name)
        yield* startOperator
      }

      const ended = yield* finished(id)
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      assert.deepStrictEqual(
        ended.phases.map(({ status }) => status),
        [...workingPhases, "activated"]
      )
      assert.strictEqual(new Set(killed).size, workingPhases.length)
      assert.isTrue(ended.checks.length > 0 && ended.checks.every(({ passed }) => passed))
      assert.strictEqual((yield* deployment(older.id)).status, "cancelled")

      yield* eventually("the cluster holds the serving engine and nothing else", objectsOfRuns(kube), (objects) => objects.join() === `Pod ${id}`)
      const answer = yield* call("POST", "/v1/chat/completions", { model: ended.model, max_tokens: 4, messages: [{ role: "user", content: "hi" }] })
      assert.strictEqual(answer.status, 200)

      // The engine's pod holds its GPUs exactly once from its placement on, no matter which operator recorded it.
      const engine = Option.getOrThrow(yield* kube.get(Pod, enginePodName(Schema.decodeUnknownSync(DeploymentId)(id)), "seatrial"))
      const placed = engine.status?.conditions?.find(({ type }) => type === "PodScheduled")?.lastTransitionTime
      const holds = yield* Effect.provide(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`SELECT pod_uid AS uid, gpus, placed_at AS placed, released_at AS released FROM gpu_holds WHERE deployment_id = ${id}`
        ),
        PgClient.layer({ url: Redacted.make(state.database_url), maxConnections: 1 })
      )
      assert.deepStrictEqual<unknown>(holds, [{ uid: engine.metadata.uid, gpus: 1, placed: new Date(placed ?? 0), released: null }])
    }).pipe(Effect.scoped),
  600_000
)
