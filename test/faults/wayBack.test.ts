import { assert, it } from "@effect/vitest"
import { Event, PodDisruptionBudget } from "@seatrial/kube"
import { objectName } from "@seatrial/operator"
import { Effect, Fiber, Schema } from "effect"
import { ask } from "../e2e/chat.ts"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { decodeId } from "./expectedEnd.ts"
import { namespace, openLane } from "./Lane.ts"
import { firstServing, serveFirst } from "./serveFirst.ts"

const engines = 4
const Serves = Schema.Array(Schema.Struct({ run: Schema.String }))

it.live("a model returns to its earlier revision by itself if the new one fails requests, and says why", () =>
  Effect.gen(function* () {
    const lane = yield* openLane
    const { caller, kube, kubelet } = lane
    const { model, modelId, run } = yield* serveFirst(lane)
    const served = lane.select(
      Serves,
      "SELECT d.id AS run FROM models m JOIN deployments d ON d.revision_id = m.active_revision_id ORDER BY d.created_at, d.id LIMIT 1"
    )
    yield* caller.call("PUT", `/v1/models/${modelId}/scaling`, { replicas: engines })
    yield* eventually(`${engines} engines have traffic`, lane.enginesOf(run), (now) => now === engines)

    const statuses: Array<number> = []
    const client = Effect.gen(function* () {
      while (true) {
        statuses.push((yield* ask(caller, model)).status)
        yield* Effect.sleep("50 millis")
      }
    })
    const clients = yield* Effect.forkScoped(Effect.all([client, client, client], { concurrency: "unbounded" }))
    const { id } = yield* caller.deploy({ model_id: modelId, serving: { ...firstServing, max_context: 900 } })
    kubelet.spoil(objectName(decodeId(id)))
    const { failure_detail, status } = yield* caller.finished(id)
    assert.deepStrictEqual([status, failure_detail], ["activated", null])

    yield* eventually("the earlier revision serves again", served, ([row]) => row?.run === run)
    yield* eventually("with all its engines", lane.enginesOf(run), (now) => now === engines)
    yield* eventually("and the new one has none", lane.enginesOf(id), (now) => now === 0)
    assert.include(statuses, 502)
    yield* Fiber.interrupt(clients)
    for (let request = 0; request < 2 * engines; request++) assert.strictEqual((yield* ask(caller, model)).status, 200)

    const events = Effect.map(patiently(kube.list(Event, { namespace })), (all) => all.find(({ reason }) => reason === "MovedBack"))
    const event = yield* eventually("an event says why", events, (found) => found !== undefined)
    assert.match(event?.note ?? "", /^The model returned to the revision rev_\w+\. \d+ of \d+ requests failed on engines of the new revision, and \d+ of \d+/)
    assert.strictEqual((yield* caller.deployment(id)).status, "activated")
    const budgets = Effect.map(patiently(kube.list(PodDisruptionBudget, { namespace })), (found) => found.map(({ metadata }) => metadata.name))
    yield* eventually("the engines that serve are kept from being evicted", budgets, (names) => names.join() === objectName(decodeId(run)))
  }).pipe(Effect.scoped)
)
