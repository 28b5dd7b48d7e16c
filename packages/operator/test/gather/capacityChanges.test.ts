import { assert, describe, it } from "@effect/vitest"
import type { Node, Pod } from "@seatrial/kube"
import { makeCapacityChanges } from "../../src/gather/capacity/capacityChanges.ts"

const container = { name: "engine", image: "engine:1" }
const pod = (status: NonNullable<Pod["status"]>, nodeName?: string): Pod => ({
  metadata: { name: "a" },
  spec: { containers: [container], ...(nodeName === undefined ? {} : { nodeName }) },
  status
})
const node = (ready: string, resourceVersion: string): Node => ({
  metadata: { name: "n", resourceVersion },
  status: { allocatable: { "nvidia.com/gpu": "8" }, conditions: [{ type: "Ready", status: ready }] }
})

describe("the changes that wake runs that wait for GPUs", () => {
  it("include pods that are placed, end or go, but not pods that appear or become ready", () => {
    const { ofPod } = makeCapacityChanges()
    assert.deepStrictEqual(
      [
        ofPod("a", pod({ phase: "Pending" })),
        ofPod("a", pod({ phase: "Pending" }, "n")),
        ofPod("a", pod({ phase: "Running" }, "n")),
        ofPod("a", pod({ phase: "Running", podIP: "10.0.0.1" }, "n")),
        ofPod("a", pod({ phase: "Failed" }, "n")),
        ofPod("a", undefined),
        ofPod("a", undefined)
      ],
      [false, true, false, false, true, true, false]
    )
  })

  it("include nodes that appear, go or change their health, but not their heartbeats", () => {
    const { ofNode } = makeCapacityChanges()
    assert.deepStrictEqual(
      [ofNode("n", node("True", "1")), ofNode("n", node("True", "2")), ofNode("n", node("Unknown", "3")), ofNode("n", undefined)],
      [true, false, true, true]
    )
  })
})
