import { Effect } from "effect"
import { makeCaller } from "../e2e/Caller.ts"
import { startProgram } from "../e2e/ChildProgram.ts"
import { makeStateFolder, startSystem } from "../e2e/LocalSystem.ts"
import type { RealCluster } from "./RealCluster.ts"

/**
 * Server and gateway beside a real control plane, with a sample hub and a member's caller. `startOperator` starts an operator that has its own ServiceAccount's rights and
 * no others.
 */
export const startProduct = Effect.fnUntraced(function* (cluster: RealCluster, settings: Readonly<Record<string, string>> = {}) {
  const folder = yield* makeStateFolder
  const account = yield* cluster.operatorAccount()
  const { state } = yield* startSystem(folder, {
    SEATRIAL_DURABLE: "false",
    SEATRIAL_PROGRAMS: "server,gateway",
    KUBECONFIG: cluster.kubeconfig,
    ...settings
  })
  const startOperator = (more: Readonly<Record<string, string>> = {}) =>
    startProgram(["packages/cli/src/main.ts", "operator"], {
      KUBECONFIG: account.kubeconfig,
      DATABASE_URL: state.database_url,
      SEATRIAL_ENCRYPTION_KEY: state.encryption_key,
      HF_ENDPOINT: state.hub,
      OPERATOR_PORT: "0",
      ...more
    })
  return { folder, state, startOperator, account, caller: makeCaller(state.address, state.api_key) }
})
