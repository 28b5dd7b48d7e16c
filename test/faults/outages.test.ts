import { assert, it } from "@effect/vitest"
import { enginePodName } from "@seatrial/operator"
import { Effect } from "effect"
import { ask } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { decodeId, settled, showsEnd } from "./expectedEnd.ts"
import { type Lane, openLane } from "./Lane.ts"
import { serveFirst } from "./serveFirst.ts"

const outage = `${Number(process.env.SEATRIAL_FAULT_OUTAGE_SECONDS ?? 60)} seconds` as const

/** The operator loses a dependency in the middle of a roll-out. The roll-out ends as usual, and every request is answered. */
const awayInRollOut = (set: (lane: Lane, away: boolean) => void) =>
  Effect.gen(function* () {
    const lane = yield* openLane
    const serving = yield* serveFirst(lane)
    const stop = yield* keepAsking(lane.caller, serving.model)
    const { id } = yield* lane.caller.deploy({ model_id: serving.modelId, serving: { host_class: "sim-small", max_context: 500 } })
    yield* lane.caller.until(id, "has begun", ({ status }) => status !== "screening")
    yield* Effect.acquireUseRelease(
      Effect.sync(() => set(lane, true)),
      () => Effect.sleep(outage),
      () => Effect.sync(() => set(lane, false))
    )
    const ended = yield* lane.caller.finished(id)
    assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
    inOrder(ended)
    yield* settled(lane, id)
    yield* showsEnd(lane, id, "activated", true)
    assert.isAbove((yield* stop).length, 0)
  }).pipe(Effect.scoped)

/** If the only serving engine is lost, requests fail until its replacement is ready and published. Its GPUs are counted once. */
const lossesWhileServing = Effect.gen(function* () {
  const lane = yield* openLane
  const { kubelet } = lane
  const { model, run } = yield* serveFirst(lane)
  const pod = enginePodName(decodeId(run))
  const answers = eventually(
    "the model answers again",
    Effect.map(
      lane.caller.call("POST", "/v1/chat/completions", { model, messages: [{ role: "user", content: "Hands?" }], max_tokens: 4 }),
      ({ status }) => status
    ),
    (status) => status === 200
  )
  const replacement = Effect.suspend(() => {
    const before = kubelet.placed.size
    return eventually(
      "another engine has a node",
      Effect.sync(() => kubelet.placed.size),
      (placed) => placed > before
    )
  })
  const losses = [
    ["its container is killed for its memory", kubelet.killForMemory(pod)],
    ["its GPU fails for a while", Effect.flatMap(kubelet.failForGpu(pod), (mend) => Effect.andThen(Effect.sleep("2 seconds"), mend))],
    ["its node falls silent for longer than it is given", Effect.flatMap(kubelet.nodeOf(pod), (node) => kubelet.loseNode(node ?? "", replacement))],
    ["its node falls silent for a moment", Effect.flatMap(kubelet.nodeOf(pod), (node) => kubelet.loseNode(node ?? "", Effect.sleep("1 second")))]
  ] as const
  for (const [what, loss] of losses) {
    const before = kubelet.placed.size
    yield* loss
    yield* settled(lane, run)
    yield* answers
    yield* Effect.logInfo(`${what}: ${kubelet.placed.size - before} new engines`)
  }
  yield* ask(lane.caller, model, {})
  const { phases } = yield* lane.caller.deployment(run)
  assert.strictEqual(phases.at(-1)?.status, "activated")
  assert.strictEqual(new Set(phases.map(({ status }) => status)).size, phases.length)
}).pipe(Effect.scoped)

it.live(
  `the API server away for ${outage}, Postgres away for ${outage}, and each way to lose a serving engine: the model answers again`,
  () =>
    Effect.all(
      [
        awayInRollOut(({ faults }, away) => faults.setAway(away ? "refuses" : null)),
        awayInRollOut(({ line }, away) => (away ? line.cut() : line.mend())),
        lossesWhileServing
      ],
      { concurrency: "unbounded", discard: true }
    ),
  1_200_000
)
