import { Lease } from "@seatrial/kube"
import { Effect, Scope } from "effect"
import type { Caller } from "../e2e/Caller.ts"
import type { ChildProgram } from "../e2e/ChildProgram.ts"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving, source } from "../e2e/Served.ts"
import type { GatewayOf } from "../faults/startGateway.ts"
import { type AuditEntry, credentialOf, followAudit, isWrite } from "./auditLog.ts"
import { type RealCluster, startRealCluster } from "./RealCluster.ts"
import { startProduct } from "./startProduct.ts"

/** A short lease ends soon after a death. A contested lease is long enough that a busy machine does not lose it. */
const leaseSeconds = (seconds: 3 | 12) => ({ OPERATOR_LEASE_SECONDS: String(seconds) })

/** A model that serves on a real control plane, and everything that may fail around it. */
export interface FaultStage {
  readonly cluster: RealCluster
  readonly caller: Caller
  /** What another gateway needs. */
  readonly system: GatewayOf
  /** The state folder of server, gateway and their Postgres. */
  readonly folder: string
  readonly model: string
  readonly modelId: string
  /** The run that made it. */
  readonly run: string
  /** How many objects an operator writes over one undisturbed run. */
  readonly writesOfRun: number
  readonly operator: () => ChildProgram
  /** Kills the operator at once and starts another. */
  readonly replaceOperator: Effect.Effect<void>
  /** When operators were killed, Unix milliseconds. */
  readonly operatorDeaths: ReadonlyArray<number>
  /** An operator that leads again, and a second one; the audit log separates their requests; how it calls both. */
  readonly startSecond: Effect.Effect<{ readonly program: ChildProgram; readonly first: string; readonly second: string }>
  readonly audit: Effect.Effect<ReadonlyArray<AuditEntry>>
  /** Goes on once operators have written so many more objects. */
  readonly afterWrites: (count: number) => Effect.Effect<void>
  /** The times from the end of Postgres until the API and the gateway answer again, in which requests may fail. */
  readonly outages: Array<{ readonly from: number; to: number }>
}

export const openFaultStage = Effect.gen(function* () {
  const cluster = yield* startRealCluster
  const scope = yield* Effect.scope
  const { account, caller, folder, startOperator, state } = yield* startProduct(cluster)
  let operator = yield* startOperator(leaseSeconds(3))
  const operatorDeaths: Array<number> = []
  const replace = Effect.fnUntraced(function* (seconds: 3 | 12) {
    yield* operator.signal("SIGKILL")
    yield* operator.exited
    operatorDeaths.push(Date.now())
    operator = yield* startOperator(leaseSeconds(seconds))
  })
  const lease = Effect.map(patiently(cluster.kube.get(Lease, "seatrial-operator", cluster.namespace)), (found) =>
    found._tag === "Some" ? found.value.spec : undefined
  )
  const audit = followAudit(cluster.audit)
  const writes = Effect.map(audit, (entries) => entries.filter(isWrite).length)
  const preview = caller.call("POST", "/v1/deployment-previews", { source, serving })
  yield* eventually("the operator has reported its host class", preview, ({ text }) => text.includes("derived"))
  const before = yield* writes
  const served = yield* caller.finished((yield* caller.deploy({ source, serving })).id)
  if (served.status !== "activated") return yield* Effect.die(new Error(`nothing serves: ${served.failure_detail}. ${operator.output()}`))
  const stage: FaultStage = {
    cluster,
    caller,
    system: { caller, databaseUrl: state.database_url, encryptionKey: state.encryption_key, apiKey: state.api_key },
    folder,
    model: served.model,
    modelId: served.model_id,
    run: served.id,
    writesOfRun: (yield* writes) - before,
    operator: () => operator,
    replaceOperator: Effect.provideService(replace(3), Scope.Scope, scope),
    operatorDeaths,
    startSecond: Effect.gen(function* () {
      yield* replace(12)
      yield* eventually("the first operator leads", lease, (seen) => seen?.leaseDurationSeconds === 12 && seen.holderIdentity !== "")
      const other = yield* cluster.operatorAccount("second")
      const program = yield* startOperator({ ...leaseSeconds(12), KUBECONFIG: other.kubeconfig })
      return { program, first: account.credential, second: other.credential }
    }).pipe(Effect.provideService(Scope.Scope, scope), Effect.orDie),
    audit,
    afterWrites: Effect.fnUntraced(function* (count: number) {
      const from = yield* writes
      yield* eventually(`${count} writes more`, writes, (now) => now - from >= count)
    }),
    outages: []
  }
  return stage
})

/** The entries of one operator among two. */
export const entriesOf = (entries: ReadonlyArray<AuditEntry>, credential: string) => entries.filter((entry) => credentialOf(entry) === credential)
