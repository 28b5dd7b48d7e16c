import { type HostClass, Ids, RequestId } from "@seatrial/domain"
import { type Caller, Deployments, HostClasses, Metering, ModelAdmin, type RequestStart, Runs } from "@seatrial/store"
import { beginRequest, makeCaller, makeServing, newModel, walk } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"

const prices = { input_micros_per_mtok: "0", output_micros_per_mtok: "0", cache_read_micros_per_mtok: "0", cache_write_micros_per_mtok: "0" }
const usage = { input_tokens: 3, output_tokens: 5, cache_read_tokens: null, cache_write_tokens: null }

/** The host classes of `npm start`, without a cluster. */
const hostClass = (name: string, gpu_memory_bytes: number): HostClass => ({
  name,
  runtimes: [{ runtime: "reference", image: "reference" }],
  gpu_pool: name,
  gpu_count: 1,
  gpu_memory_bytes,
  price_per_gpu_hour_micros: "100000",
  simulated: true
})

/** A completed, a failed and a refused request. */
const makeRequests = Effect.fnUntraced(function* (caller: Caller, served: Pick<RequestStart, "modelId" | "model" | "revisionId">) {
  const ids = yield* Ids
  const metering = yield* Metering
  const common = { orgId: caller.orgId, keyId: caller.keyId, endpoint: "/v1/chat/completions", streamed: true, ...served }
  const receipt = { prices, hfRevision: "c".repeat(40), engineVersion: "reference-0.1.0" }
  for (const statusCode of [200, 200, 502]) {
    const id = yield* ids.make(RequestId)
    const error = statusCode === 200 ? null : { code: "engine_failed", message: "The engine failed.", param: null }
    yield* beginRequest(metering, { ...common, id })
    yield* metering.end({ ...common, id, statusCode, usage, ttftMs: 12.5, latencyMs: 250.25, finishReason: "stop", error, note: null, receipt })
  }
})

/**
 * Creates an organization with records of every kind: serving models, one of them published, runs in every state, requests with receipts, and
 * audit events. Returns a key with all scopes.
 */
export const seed = Effect.gen(function* () {
  const deployments = yield* Deployments
  const runs = yield* Runs
  yield* (yield* HostClasses).replaceAll([hostClass("sim-small", 2 ** 30), hostClass("sim-large", 2 ** 33)])
  const { caller, secret } = yield* makeCaller("acme")
  const { orgId, userId } = caller
  const first = yield* makeServing(caller, "first", "first")
  const published = yield* makeServing(caller, "published", "published")
  const rates = { ...prices, input_micros_per_mtok: "100000", output_micros_per_mtok: "400000" }
  yield* (yield* ModelAdmin).publish(orgId, published.modelId, rates)
  yield* makeRequests(caller, first)

  const booting = yield* deployments.create(newModel(caller, "booting", "booting"))
  yield* walk(caller, booting.id, "booting")
  const stopped = yield* deployments.create(newModel(caller, "stopped", "stopped"))
  yield* deployments.cancel(orgId, stopped.id, userId)
  const failed = yield* deployments.create(newModel(caller, "failed", "failed"))
  const failure = { code: "repository_not_found", text: "There is no such repository." }
  yield* runs.enter({ id: failed.id, orgId, from: "screening", to: "failed", reason: "Test", failure })
  return Redacted.value(secret)
})
