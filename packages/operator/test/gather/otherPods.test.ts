import { assert, describe, it } from "@effect/vitest"
import { KubeError, type Node, WatchEvent } from "@seatrial/kube"
import { Effect, Queue, Schema, Stream } from "effect"
import { makeGpuLedger } from "../../src/gather/capacity/GpuLedger.ts"
import { countOtherPods, OtherPod, takenByOther } from "../../src/gather/capacity/otherPods.ts"
import { podClass } from "../observations.ts"

type Pod = typeof OtherPod.schema.Type

const gpus = (count: number) => ({ resources: { limits: { "nvidia.com/gpu": String(count), cpu: "1" } } })
const podOf = (name: string, spec: object, rest: object = {}): Pod =>
  Schema.decodeUnknownSync(OtherPod.schema)({
    metadata: { name, namespace: "team", uid: name, labels: { secret: "x" }, annotations: { a: "b" } },
    spec,
    ...rest
  })
const bound = (name: string, count: number) => podOf(name, { nodeName: "node-1", containers: [gpus(count)] })
const node: Node = {
  metadata: { name: "node-1" },
  status: { allocatable: { "nvidia.com/gpu": "4" }, conditions: [{ type: "Ready", status: "True" }] }
}
const amounts = (spec: object) => Object.fromEntries(takenByOther(podOf("p", { nodeName: "node-1", ...spec }))?.amounts ?? [])

const makeLedger = () => {
  const ledger = makeGpuLedger()
  ledger.setNode("node-1", node)
  return { ledger, free: () => [ledger.freeSlots(podClass, ""), ledger.gpus(podClass).freeGpus] }
}

describe("a pod of another namespace", () => {
  it("keeps nothing in memory but its node and its resources", () => {
    const container = { name: "c", image: "i", env: [{ name: "TOKEN", value: "secret" }], ...gpus(1) }
    const pod = podOf("p", { nodeName: "node-1", containers: [container] }, { status: { podIP: "1" } })
    assert.deepStrictEqual(
      [Object.keys(pod), Object.keys(pod.metadata)],
      [
        ["metadata", "spec"],
        ["name", "namespace", "uid"]
      ]
    )
    assert.notInclude(JSON.stringify(pod), "secret")
  })

  it("takes extended resources as the scheduler counts them", () => {
    assert.deepStrictEqual(amounts({ containers: [gpus(1), gpus(2)] }), { "nvidia.com/gpu": 3 })
    assert.deepStrictEqual(amounts({ containers: [gpus(1)], initContainers: [gpus(4)] }), { "nvidia.com/gpu": 4 })
    assert.deepStrictEqual(amounts({ containers: [gpus(1)], initContainers: [{ ...gpus(1), restartPolicy: "Always" }] }), { "nvidia.com/gpu": 2 })
    assert.isUndefined(takenByOther(podOf("p", { nodeName: "node-1", containers: [{ resources: { requests: { cpu: "4" } } }] })))
    assert.isUndefined(takenByOther(podOf("p", { containers: [gpus(1)] })))
  })

  it.effect("counts from the first list on, until it is gone or a list lacks it", () =>
    Effect.gen(function* () {
      const { free, ledger } = makeLedger()
      const events = yield* Queue.unbounded<WatchEvent<Pod>>()
      yield* Queue.offer(events, WatchEvent.Synced({ items: [bound("a", 2), bound("b", 1), podOf("idle", { nodeName: "node-1", containers: [{}] })] }))
      const changes = yield* countOtherPods(ledger, Stream.fromQueue(events))
      assert.deepStrictEqual(free(), [1, 1])
      yield* Stream.runHead(changes)
      const after = Effect.fnUntraced(function* (event: WatchEvent<Pod>) {
        yield* Queue.offer(events, event)
        yield* Stream.runHead(changes)
        return free()
      })
      assert.deepStrictEqual(yield* after(WatchEvent.Removed({ object: bound("a", 2) })), [3, 3])
      assert.deepStrictEqual(yield* after(WatchEvent.Changed({ object: bound("c", 3) })), [0, 0])
      assert.deepStrictEqual(yield* after(WatchEvent.Synced({ items: [bound("c", 3)] })), [1, 1])
    }).pipe(Effect.scoped)
  )

  it.effect("does not count if the operator may not read it, and does not stop the operator", () =>
    Effect.gen(function* () {
      const { free, ledger } = makeLedger()
      yield* countOtherPods(ledger, Stream.fail(new KubeError({ reason: "Denied", message: "pods is forbidden" })))
      assert.deepStrictEqual(free(), [4, 4])
    }).pipe(Effect.scoped)
  )
})
