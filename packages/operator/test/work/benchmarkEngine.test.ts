import { assert, describe, it } from "@effect/vitest"
import type { Benchmark } from "@seatrial/domain"
import type { Node } from "@seatrial/kube"
import { Effect, Fiber, Latch } from "effect"
import { benchmarkKey, decided, makeBenchmarkTurns, sharesGpus } from "../../src/work/benchmarkEngine.ts"
import { podClass, revision } from "../observations.ts"

const node = (name: string, labels: Readonly<Record<string, string>> = {}): Node => ({ metadata: { name, labels } })

describe("the key of a benchmark", () => {
  const keyOf = (settings: Partial<typeof revision.settings>, on?: Node) =>
    benchmarkKey({ node: on, podClass, revision: { ...revision, settings: { ...revision.settings, ...settings } } })

  it("does not depend on the order of settings, and changes with any of them", () => {
    const [one, other] = [{ engine_flags: { max_num_seqs: 4, seed: 1 } }, { engine_flags: { seed: 1, max_num_seqs: 4 } }]
    assert.deepStrictEqual(keyOf(one), keyOf(other))
    assert.notStrictEqual(keyOf(one).flags_sha256, keyOf({ engine_flags: { max_num_seqs: 5, seed: 1 } }).flags_sha256)
    for (const unheard of [{ hold_seconds: 60 }, { host_class: "other" }]) assert.strictEqual(keyOf(unheard).flags_sha256, keyOf({}).flags_sha256)
    assert.match(keyOf({}).flags_sha256, /^[0-9a-f]{64}$/)
  })

  it.each([
    ["by its whole version", { "nvidia.com/cuda.driver-version.full": "580.65.06" }, "580.65.06"],
    [
      "by the parts of its version",
      { "nvidia.com/cuda.driver-version.major": "580", "nvidia.com/cuda.driver-version.minor": "65", "nvidia.com/cuda.driver-version.revision": "06" },
      "580.65.06"
    ],
    [
      "by the parts as they were called before",
      { "nvidia.com/cuda.driver.major": "535", "nvidia.com/cuda.driver.minor": "104", "nvidia.com/cuda.driver.rev": "05" },
      "535.104.05"
    ],
    ["by nothing if a part is missing", { "nvidia.com/cuda.driver.major": "535" }, null]
  ])("names the driver %s", (_, labels, driver) => assert.strictEqual(keyOf({}, node("n", labels)).driver, driver))

  it.each([
    ["are not shared by default", {}, false],
    ["are not shared as whole GPUs and as slices", { "nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.replicas": "1" }, false],
    ["are shared in turns", { "nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4" }, true],
    ["are shared at once", { "nvidia.com/gpu.sharing-strategy": "mps" }, true],
    ["are shared if there are more replicas than GPUs", { "nvidia.com/gpu.replicas": "2" }, true]
  ])("says whether its GPUs %s", (_, labels, shared) => assert.strictEqual(sharesGpus(node("n", labels)), shared))
})

describe("a repeated benchmark", () => {
  const benchmark: Benchmark = { suite: "seatrial-bench", suite_version: 1, input_tokens: 64, output_tokens: 16, seed: 1, steps: [] }
  const decidedWith = (missing?: string) => decided(benchmark, "2 of 60 failed.", { ...benchmark, ...(missing === undefined ? {} : { missing }) }).first_failed

  it("decides, and says why the first failed, also with invalid figures, but not if the operator's own fault cut it short", () => {
    assert.deepStrictEqual([undefined, "client_limited"].map(decidedWith), ["2 of 60 failed.", "2 of 60 failed."])
    assert.deepStrictEqual(["time_limit", "generator_failed"].map(decidedWith), [undefined, undefined])
  })
})

it.effect("one benchmark runs on a node and two on a GPU type; an interrupted one returns its turn", () =>
  Effect.gen(function* () {
    const inTurn = makeBenchmarkTurns()
    const running = new Set<string>()
    const start = Effect.fnUntraced(function* (name: string, on: string, pool: string) {
      const end = yield* Latch.make()
      const benchmark = Effect.acquireUseRelease(
        Effect.sync(() => running.add(name)),
        () => end.await,
        () => Effect.sync(() => running.delete(name))
      )
      const at = { node: node(on), podClass: { ...podClass, hostClass: { ...podClass.hostClass, gpu_pool: pool } } }
      const fibre = yield* Effect.forkChild(inTurn(at)(benchmark))
      yield* Effect.yieldNow
      return { end, fibre }
    })
    const first = yield* start("first", "n1", "h100")
    yield* start("same node", "n1", "l4")
    const second = yield* start("second", "n2", "h100")
    yield* start("third of its cards", "n3", "h100")
    yield* start("other cards", "n4", "l4")
    assert.sameMembers([...running], ["first", "second", "other cards"])
    yield* first.end.open
    yield* Fiber.join(first.fibre)
    yield* Fiber.interrupt(second.fibre)
    yield* Effect.yieldNow
    assert.sameMembers([...running], ["same node", "third of its cards", "other cards"])
  })
)
