import { assert } from "@effect/vitest"
import { HostClassResource } from "@seatrial/operator"
import { Effect, Schema } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { alwaysHolds } from "./alwaysHolds.ts"
import { settled } from "./expectedEnd.ts"
import type { Lane } from "./Lane.ts"
import type { Serving } from "./serveFirst.ts"

/** Writes that belong to no run. */
export const generalWrites = ["HostClasses.replaceAll", "GpuHolds.recordObservation"] as const

const Price = Schema.Tuple([Schema.Struct({ price: Schema.String })])
/** There is no row before the first observation. */
const StepResult = Schema.Array(Schema.Struct({ at: Schema.Finite }))

let price = 100_000

/** A roll-out during a price change of a host class. The operator dies at its next write of this kind, and the next operator writes the same. */
export const playGeneralDeath = Effect.fnUntraced(function* (lane: Lane, serving: Serving, what: (typeof generalWrites)[number], afterWrite: boolean) {
  const { caller, deaths, kube } = lane
  const observedAt = Effect.map(lane.select(StepResult, "SELECT extract(epoch FROM seen_at)::float8 * 1000 AS at FROM gpu_looks"), ([row]) => row?.at ?? 0)
  const stop = yield* keepAsking(caller, serving.model)
  deaths.plan({ at: 1, afterWrite, concerns: (_, write) => write === what })
  const next = String(++price)
  yield* patiently(kube.mergePatch(HostClassResource, "sim-small", undefined, { spec: { pricePerGpuHour: next } }))
  const { id } = yield* caller.deploy({ model_id: serving.modelId, serving: { host_class: "sim-small", max_context: 128 + (price % 880) } })
  const { killed } = yield* eventually(`the operator dies of ${what}`, Effect.sync(deaths.report), (report) => report.killed.length > 0)
  assert.deepStrictEqual(killed, [`${afterWrite ? "after" : "before"} ${what}`])
  const died = Date.now()
  const ended = yield* caller.finished(id)
  assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
  inOrder(ended)
  serving.run = id
  yield* eventually(
    "Postgres has the host class as it is",
    lane.select(Price, `SELECT spec ->> 'price_per_gpu_hour_micros' AS price FROM host_classes WHERE name = 'sim-small'`),
    ([row]) => row.price === next
  )
  yield* eventually("somebody looks at what is held again", observedAt, (at) => at > died)
  yield* settled(lane, id)
  deaths.plan({ at: 0, afterWrite: false })
  const answers = yield* stop
  assert.isAbove(answers.length, 0)
  yield* alwaysHolds(lane, [id], answers)
  return { story: `a roll-out, ${id}; ${answers.length} answers`, killed }
}, Effect.scoped)
