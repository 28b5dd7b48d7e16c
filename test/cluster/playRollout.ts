import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { objectsOfRuns } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { serving } from "../e2e/Served.ts"
import type { Draw } from "../faults/Draw.ts"
import { askThroughout } from "./askThroughout.ts"
import { type ClusterFault, operatorKilled } from "./clusterFaults.ts"
import type { FaultStage } from "./FaultStage.ts"

/**
 * One roll-out with these faults and two deaths of the operator, each after a drawn number of the operators' writes, while a client asks. Everything but this machine's speed
 * follows from the seed. Gives what happened.
 */
export const playRollout = Effect.fnUntraced(function* (stage: FaultStage, seed: number, faults: ReadonlyArray<ClusterFault>, draw: Draw) {
  const { caller, cluster, modelId, operator, writesOfRun } = stage
  const stop = yield* askThroughout(stage)
  const drawn = yield* Effect.forEach([...faults, operatorKilled, operatorKilled], ({ early, name, prepare }) =>
    Effect.map(prepare(stage, seed), (happen) => ({ name, happen, after: draw.integer(0, early === true ? 3 : Math.max(4, writesOfRun - 2)) }))
  )
  const plan = drawn.sort((one, other) => one.after - other.after)
  const story = plan.map(({ after, name }) => `${name} after ${after} writes`).join(", ")
  yield* Effect.logInfo(`seed ${seed}: ${story}`)
  const { id } = yield* caller.deploy({ model_id: modelId, serving: { ...serving, max_context: 256 + (seed % 256) } })
  const over = Effect.asVoid(caller.finished(id))
  let passed = 0
  for (const { after, happen } of plan) {
    // Of a run that needed fewer writes the rest happens after it.
    yield* Effect.raceFirst(stage.afterWrites(after - passed), over)
    passed = after
    yield* happen(stage, id, draw)
  }
  const ended = yield* caller.finished(id).pipe(Effect.tapCause(() => Effect.logError(operator().output())))
  assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null], `seed ${seed}: ${story}`)
  inOrder(ended)
  yield* eventually("the cluster holds the serving engine and nothing else", objectsOfRuns(cluster.kube), (objects) => objects.join() === `Pod ${id}`)
  const { answered, failures, refused } = yield* stop
  assert.deepStrictEqual(failures, [], `seed ${seed}: ${story}`)
  assert.isAbove(answered, 0)
  return `seed ${seed}: ${story}; ${answered} answers, ${refused} refused while Postgres was away`
}, Effect.scoped)
