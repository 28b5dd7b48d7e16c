import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { objectsOfRuns } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { serving } from "../e2e/Served.ts"
import type { Draw } from "../faults/Draw.ts"
import { askThroughout } from "./askThroughout.ts"
import { type AuditEntry, isWrite } from "./auditLog.ts"
import { entriesOf, type FaultStage } from "./FaultStage.ts"

const onLease = ({ objectRef }: AuditEntry) => objectRef?.resource === "leases"
const wroteLease = (entry: AuditEntry) => onLease(entry) && (entry.verb === "update" || entry.verb === "create") && (entry.responseStatus?.code ?? 500) < 300

/**
 * A roll-out in the middle of which the leader is stopped (not ended) at a drawn write, another operator takes the lease over, and the first goes on where it was: by the
 * API server's audit log it writes nothing any more, and nothing is made twice.
 */
export const changeLease = Effect.fnUntraced(function* (stage: FaultStage, seed: number, draw: Draw) {
  const { audit, caller, cluster, modelId, operator, writesOfRun } = stage
  const stop = yield* askThroughout(stage)
  const { first, program, second } = yield* stage.startSecond
  const leader = operator()
  yield* eventually("the second operator stands by", audit, (entries) => entriesOf(entries, second).some(onLease))
  const after = draw.integer(1, Math.max(2, Math.floor(writesOfRun / 2)))
  yield* Effect.logInfo(`seed ${seed}: the leader is stopped after ${after} writes`)
  const began = (yield* audit).length
  const { id } = yield* caller.deploy({ model_id: modelId, serving: { ...serving, max_context: 256 + (seed % 256) } })
  yield* stage.afterWrites(after)
  yield* leader.signal("SIGSTOP")
  const entriesAtChange = yield* eventually("the second operator leads and writes", audit, (entries) => {
    const own = entriesOf(entries, second)
    return own.some(wroteLease) && own.some(isWrite)
  })
  const taken = entriesOf(entriesAtChange, second).find(wroteLease)?.requestReceivedTimestamp ?? ""
  const firstCount = entriesOf(entriesAtChange, first).length
  yield* leader.signal("SIGCONT")
  yield* eventually("the first operator is awake", audit, (entries) => entriesOf(entries, first).slice(firstCount).some(onLease))
  const ended = yield* caller.finished(id).pipe(Effect.tapCause(() => Effect.logError(program.output())))
  assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null], `seed ${seed}`)
  inOrder(ended)
  yield* eventually("the cluster holds the serving engine and nothing else", objectsOfRuns(cluster.kube), (objects) => objects.join() === `Pod ${id}`)
  assert.isFalse(leader.hasExited(), leader.output())

  const entries = yield* audit
  const late = entriesOf(entries, first).filter((entry) => (isWrite(entry) || wroteLease(entry)) && entry.requestReceivedTimestamp > taken)
  assert.deepStrictEqual(late, [], `seed ${seed}: ${leader.output()}`)
  const creations = entries
    .slice(began)
    .filter((entry) => isWrite(entry) && entry.responseStatus?.code === 201 && ["pods", "jobs"].includes(entry.objectRef?.resource ?? ""))
    .map(({ objectRef }) => `${objectRef?.resource}/${objectRef?.name}`)
  assert.isAbove(creations.length, 0)
  assert.deepStrictEqual(creations, [...new Set(creations)])
  const { answered, failures } = yield* stop
  assert.deepStrictEqual(failures, [])
  assert.isAbove(answered, 0)
  yield* leader.signal("SIGTERM")
  return `seed ${seed}: stopped after ${after} writes; ${answered} answers`
}, Effect.scoped)
