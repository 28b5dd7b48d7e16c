import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeCaller } from "../e2e/Caller.ts"
import { startProgram } from "../e2e/ChildProgram.ts"
import { ask, wholeOf } from "../e2e/chat.ts"
import { makeStateFolder, startSystem } from "../e2e/LocalSystem.ts"
import { serving, source } from "../e2e/Served.ts"
import { startRealCluster } from "./RealCluster.ts"

it.live(
  "on a real control plane a model goes from create to an answer: its pods placed by the scheduler, the operator with its own account",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const { state } = yield* startSystem(yield* makeStateFolder, {
        SEATRIAL_DURABLE: "false",
        SEATRIAL_PROGRAMS: "server,gateway",
        KUBECONFIG: cluster.kubeconfig
      })
      const operator = yield* startProgram(["packages/cli/src/main.ts", "operator"], {
        KUBECONFIG: cluster.operator,
        DATABASE_URL: state.database_url,
        SEATRIAL_ENCRYPTION_KEY: state.encryption_key,
        HF_ENDPOINT: state.hub,
        OPERATOR_PORT: "0"
      })
      const caller = makeCaller(state.address, state.api_key)
      const { id } = yield* caller.deploy({ source, serving }).pipe(Effect.tapCause(() => Effect.logError(operator.said())))
      const ended = yield* caller.finished(id).pipe(Effect.tapCause(() => Effect.logError(operator.said())))
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      const answer = wholeOf(yield* ask(caller, ended.model))
      assert.isAbove(answer.usage.completion_tokens, 0)
      yield* cluster.command("kubectl", ["wait", "--for=condition=Activated", "modeldeployments", "--all", `--namespace=${cluster.namespace}`, "--timeout=60s"])
    }).pipe(Effect.scoped),
  300_000
)
