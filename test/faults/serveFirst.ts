import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type Lane, source } from "./Lane.ts"

/** A model that is served, and the run that serves it. */
export interface Serving {
  readonly modelId: string
  readonly model: string
  run: string
}

export const firstServing = { host_class: "sim-small", max_context: 1_000 } as const

/** Deploys the first model of a lane, without faults. */
export const serveFirst = Effect.fnUntraced(function* ({ caller }: Lane) {
  const { id, model_id } = yield* caller.deploy({ source, serving: firstServing })
  const { failure_detail, model, status } = yield* caller.finished(id)
  assert.deepStrictEqual([status, failure_detail], ["activated", null])
  const serving: Serving = { modelId: String(model_id), model, run: String(id) }
  return serving
})
