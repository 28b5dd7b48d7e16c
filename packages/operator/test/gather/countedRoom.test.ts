import { assert, describe, it } from "@effect/vitest"
import type { Node } from "@seatrial/kube"
import { hasCountedRoom } from "../../src/gather/capacity/countedRoom.ts"
import type { WatchedPod } from "../../src/resources/watched.ts"
import { podClass } from "../observations.ts"

type Amounts = Readonly<Record<string, string>>

const node = (name: string, allocatable: Amounts): Node => ({
  metadata: { name, labels: {} },
  status: { allocatable, conditions: [{ type: "Ready", status: "True" }] }
})
const pod = (name: string, requests: Amounts, nodeName?: string, limits: Amounts = {}): WatchedPod => ({
  metadata: { name },
  spec: { ...(nodeName === undefined ? {} : { nodeName }), containers: [{ name: "engine", resources: { requests, limits } }] }
})
const gpu = "nvidia.com/gpu"
const large = { cpu: "64", memory: "512Gi", [gpu]: "8", "rdma/hca": "2" }
const wanted = pod("wanted", { cpu: "7500m", memory: "60Gi", [gpu]: "1" }, undefined, { [gpu]: "1", "rdma/hca": "1" })

describe("by what the operator counts, an engine has room", () => {
  const cases: ReadonlyArray<readonly [what: string, nodes: ReadonlyArray<Node>, pods: ReadonlyArray<WatchedPod>, hasRoom: boolean]> = [
    ["on an empty node", [node("a", large)], [], true],
    ["not without nodes", [], [], false],
    ["not on a node with too few processors", [node("a", { ...large, cpu: "7" })], [], false],
    ["not on a node with too little memory", [node("a", { ...large, memory: "61000M" })], [], false],
    ["not on a node without its extra resource", [node("a", { cpu: "64", memory: "512Gi", [gpu]: "8" })], [], false],
    ["not if own pods hold the processors", [node("a", large)], [pod("own", { cpu: "57" }, "a")], false],
    ["not if own pods hold the GPUs", [node("a", large)], [pod("own", {}, "a", { [gpu]: "8" })], false],
    ["on another node than that of own pods", [node("a", large), node("b", large)], [pod("own", { cpu: "60" }, "a")], true],
    ["beside a pod that has ended", [node("a", large)], [{ ...pod("own", { cpu: "60" }, "a"), status: { phase: "Succeeded" } }], true],
    ["not split over nodes", [node("a", { ...large, [gpu]: "0" }), node("b", { ...large, cpu: "1" })], [], false]
  ]
  for (const [what, nodes, pods, hasRoom] of cases) it(what, () => assert.strictEqual(hasCountedRoom(wanted, podClass, nodes, pods), hasRoom))
})
