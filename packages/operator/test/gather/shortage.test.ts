import { assert, describe, it } from "@effect/vitest"
import type { Node, Pod } from "@seatrial/kube"
import { makeGpuLedger } from "../../src/gather/capacity/GpuLedger.ts"
import type { NodeRequirement, NodeTerm } from "../../src/resources/Affinity.ts"
import { podClass } from "../observations.ts"

const h100 = { ...podClass, nodeSelector: { card: "h100" } }
const ready = { type: "Ready", status: "True" }
const resource = "nvidia.com/gpu"

interface Given {
  readonly gpus?: number
  readonly offers?: string
  readonly card?: string
  readonly cordoned?: boolean
  readonly silent?: boolean
  readonly taint?: string
}
const nodeOf = (name: string, { card = "h100", cordoned = false, gpus = 1, offers = resource, silent = false, taint }: Given): Node => ({
  metadata: { name, labels: { card } },
  spec: { unschedulable: cordoned, ...(taint === undefined ? {} : { taints: [{ key: taint, value: "x", effect: "NoSchedule" }] }) },
  status: { allocatable: { [offers]: String(gpus) }, conditions: [silent ? { ...ready, status: "Unknown" } : ready] }
})
const ledgerOf = (given: ReadonlyArray<Given>) => {
  const ledger = makeGpuLedger()
  for (const [index, one] of given.entries()) ledger.setNode(`n${index}`, nodeOf(`n${index}`, one))
  return ledger
}
const pod: Pod = {
  metadata: { name: "engine", labels: { "seatrial.dev/host-class": "local" } },
  spec: { nodeName: "n0", containers: [{ name: "engine", resources: { limits: { [resource]: 1 } } }] }
}

describe("why no node can take an engine", () => {
  const cases: ReadonlyArray<readonly [what: string, given: ReadonlyArray<Given>, gpus: number, words: string | null]> = [
    ["nothing, if one can", [{}, { cordoned: true }], 1, null],
    ["no nodes", [], 1, "the cluster has no node"],
    ["labels that no node has", [{ card: "a100" }, { card: "l4" }], 1, "no node has the class's labels card=h100 (nodes checked: 2)"],
    ["a resource that no node offers", [{ offers: "amd.com/gpu" }], 1, "no node with the class's labels offers nvidia.com/gpu (nodes checked: 1)"],
    ["too few on each", [{ gpus: 4 }, { gpus: 2 }], 8, "no node with the class's labels offers 8 of nvidia.com/gpu: the most is 4"],
    ["a node that was cordoned", [{ cordoned: true }, { card: "a100" }], 1, "the only node of the class takes no new pods (cordoned)"],
    [
      "nodes that each have their own reason",
      [{ cordoned: true }, { silent: true }, { silent: true }, { taint: "dedicated" }],
      1,
      "all 4 nodes of the class take no new pods (1 cordoned, 2 not ready, 1 tainted)"
    ]
  ]
  for (const [what, given, gpus, words] of cases) {
    it(what, () => assert.strictEqual(ledgerOf(given).shortage({ ...h100, hostClass: { ...h100.hostClass, gpu_count: gpus } }), words))
  }

  it("GPUs that are shared, for an engine that needs several", () => {
    const ledger = makeGpuLedger()
    const node = nodeOf("n0", { gpus: 8 })
    ledger.setNode("n0", { ...node, metadata: { ...node.metadata, labels: { card: "h100", "nvidia.com/gpu.product": "H100-MIG-1g.10gb" } } })
    const several = { ...h100, hostClass: { ...h100.hostClass, gpu_count: 2 } }
    assert.strictEqual(ledger.shortage(several), "the GPUs of 1 of 1 nodes are MIG slices or are shared, and an engine needs 2 whole GPUs")
    assert.deepStrictEqual([ledger.freeSlots(several, ""), ledger.freeSlots(h100, "")], [0, 8])
  })

  describe("a required node affinity", () => {
    const requires = (...terms: readonly [NodeTerm, ...ReadonlyArray<NodeTerm>]) => ({
      ...h100,
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } }
    })
    const expression = (operator: NodeRequirement["operator"], ...values: ReadonlyArray<string>): NodeTerm => ({
      matchExpressions: [{ key: "rank", operator, values }]
    })
    const ledger = makeGpuLedger()
    for (const rank of ["1", "5", null]) {
      const node = nodeOf(`n${rank}`, {})
      ledger.setNode(`n${rank}`, { ...node, metadata: { ...node.metadata, labels: { card: "h100", ...(rank === null ? {} : { rank }) } } })
    }
    const cases: ReadonlyArray<readonly [terms: readonly [NodeTerm, ...ReadonlyArray<NodeTerm>], nodes: number]> = [
      [[expression("In", "1", "5")], 2],
      [[expression("NotIn", "1")], 2],
      [[expression("Exists")], 2],
      [[expression("DoesNotExist")], 1],
      [[expression("Gt", "1")], 1],
      [[expression("Lt", "2")], 1],
      [[expression("In", "1"), expression("DoesNotExist")], 2],
      [[{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n5"] }], ...expression("Exists") }], 1],
      [[{}], 0]
    ]
    for (const [terms, nodes] of cases) {
      it(`leaves ${nodes} of 3 nodes: ${JSON.stringify(terms)}`, () => assert.strictEqual(ledger.capacity(requires(...terms)).nodes, nodes))
    }
    it("that no node matches is named", () =>
      assert.strictEqual(ledger.shortage(requires(expression("In", "7"))), "no node has the class's labels and matches its node affinity (nodes checked: 3)"))
  })

  it("is computed again once a node changes", () => {
    const ledger = ledgerOf([{ cordoned: true }])
    assert.isNotNull(ledger.shortage(h100))
    ledger.setNode("n0", nodeOf("n0", {}))
    assert.isNull(ledger.shortage(h100))
  })
})

describe("the place of an engine that would be stopped for another", () => {
  const cases: ReadonlyArray<readonly [what: string, given: Given, words: string | null]> = [
    ["is available if its node accepts the other engine", {}, null],
    ["is not available on a cordoned node", { cordoned: true }, "its node takes no new pods (cordoned)"],
    ["is not available on an unresponsive node", { silent: true }, "its node takes no new pods (not ready)"],
    ["is not available on a tainted node", { taint: "dedicated" }, "its node takes no new pods (tainted)"],
    ["is not available if the class now has other nodes", { card: "a100" }, "its node does not have the class's labels"],
    ["is not available if the node's GPUs are gone", { gpus: 0 }, "its node would not have enough nvidia.com/gpu"]
  ]
  for (const [what, given, words] of cases) {
    it(what, () => {
      const ledger = ledgerOf([given])
      ledger.setPod("engine", pod)
      assert.strictEqual(ledger.noPlaceOf(h100, "engine"), words)
    })
  }
  it("is none if it has no node itself", () => assert.strictEqual(ledgerOf([{}]).noPlaceOf(h100, "engine"), "it has no node"))
})
