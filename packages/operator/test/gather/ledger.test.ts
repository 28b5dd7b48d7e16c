import { assert, describe, it } from "@effect/vitest"
import type { Node, Pod } from "@seatrial/kube"
import { Schema } from "effect"
import { makeGpuLedger } from "../../src/gather/capacity/GpuLedger.ts"
import { gpusOf } from "../../src/gather/capacity/takenGpus.ts"
import { podClass } from "../observations.ts"

const small = podClass
const large = { ...podClass, hostClass: { ...podClass.hostClass, name: "large", gpu_count: 2 } }
const classes = [small, large]
const name = Schema.Literals(["a", "b", "c", "d"])
const node = Schema.Literals(["n", "m"])
const Step = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("node"), name: node, there: Schema.Boolean, ready: Schema.Boolean, gpus: Schema.Literals([0, 1, 4]) }),
  Schema.Struct({
    kind: Schema.Literal("pod"),
    name,
    state: Schema.Literals(["gone", "unbound", "unschedulable", "bound", "ended", "gated"]),
    node,
    class: Schema.Literals(["local", "large"]),
    organization: Schema.Literals(["acme", "beta"]),
    gpus: Schema.Literals([1, 2])
  })
])
type PodStep = Extract<typeof Step.Type, { readonly kind: "pod" }>

const nodeOf = (step: Extract<typeof Step.Type, { readonly kind: "node" }>): Node => ({
  metadata: { name: step.name },
  status: { allocatable: { "nvidia.com/gpu": String(step.gpus) }, conditions: [{ type: "Ready", status: step.ready ? "True" : "False" }] }
})
const podOf = (step: PodStep): Pod => ({
  metadata: { name: step.name, labels: { "seatrial.dev/host-class": step.class, "seatrial.dev/organization": step.organization } },
  spec: {
    containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": step.gpus } } }],
    ...(step.state === "bound" || step.state === "ended" ? { nodeName: step.node } : {}),
    ...(step.state === "gated" ? { schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] } : {})
  },
  status: {
    phase: step.state === "ended" ? "Failed" : "Pending",
    conditions: step.state === "unschedulable" ? [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }] : []
  }
})

/** The same result, counted from all objects. */
const counted = (queriedClass: typeof podClass, nodes: ReadonlyArray<Node>, pods: ReadonlyArray<PodStep>, except: string) => {
  const counting = pods.filter(({ state, ...pod }) => state !== "ended" && state !== "gated" && pod.name !== except)
  const sum = (some: ReadonlyArray<PodStep>) => some.reduce((total, pod) => total + gpusOf(podOf(pod), "nvidia.com/gpu"), 0)
  const own = counting.filter((pod) => pod.class === queriedClass.hostClass.name)
  const unbound = own.filter(({ state }) => state !== "bound")
  const slots = nodes.map(({ metadata, status }) => {
    if (status?.conditions?.[0]?.status !== "True") return 0
    const held = sum(counting.filter((pod) => pod.state === "bound" && pod.node === metadata.name))
    return Math.max(0, Math.floor((Number(status.allocatable?.["nvidia.com/gpu"]) - held) / queriedClass.hostClass.gpu_count))
  })
  return {
    free: slots.reduce((total, free) => total + free, 0) - unbound.length,
    used: sum(own),
    ofAcme: sum(own.filter(({ organization }) => organization === "acme")),
    unplaced: unbound.length,
    onTheirWay: sum(unbound.filter(({ state }) => state === "unbound"))
  }
}

describe("the ledger of GPUs", () => {
  it.prop("equals a complete count after any history", [Schema.Array(Step).check(Schema.isMaxLength(25))], ([steps]) => {
    const ledger = makeGpuLedger()
    const nodes = new Map<string, Node>()
    const pods = new Map<string, PodStep>()
    for (const step of steps) {
      if (step.kind === "node") {
        if (step.there) nodes.set(step.name, nodeOf(step))
        else nodes.delete(step.name)
        ledger.setNode(step.name, nodes.get(step.name))
      } else {
        if (step.state === "gone") pods.delete(step.name)
        else pods.set(step.name, step)
        ledger.setPod(step.name, step.state === "gone" ? undefined : podOf(step))
      }
      for (const queriedClass of classes) {
        for (const except of ["", "a"]) {
          const answers = {
            free: ledger.freeSlots(queriedClass, except),
            used: ledger.usedGpus(queriedClass, except),
            ofAcme: ledger.usedGpus(queriedClass, except, "acme"),
            unplaced: ledger.unplaced(queriedClass, except),
            onTheirWay: ledger.onTheirWay(queriedClass, except)
          }
          assert.deepStrictEqual(answers, counted(queriedClass, [...nodes.values()], [...pods.values()], except))
        }
      }
    }
  })

  /** The number of nodes and pods that are read to answer after one pod was bound, out of this many. */
  const lookedAt = (count: number) => {
    let looks = 0
    const watched = <A extends object>(object: A): A =>
      new Proxy(object, {
        get: (target, key) => {
          if (key === "spec") looks++
          return Reflect.get(target, key)
        }
      })
    const ledger = makeGpuLedger()
    const bound = { kind: "pod", state: "bound", class: "local", organization: "acme", gpus: 1 } as const
    const one: PodStep = { ...bound, name: "a", node: "n" }
    const at = (pod: Pod, index: number): Pod => ({
      ...pod,
      metadata: { ...pod.metadata, name: `p${index}` },
      spec: { containers: [], ...pod.spec, nodeName: `n${index}` }
    })
    for (let index = 0; index < count; index++) {
      ledger.setNode(`n${index}`, watched({ ...nodeOf({ kind: "node", name: "n", there: true, ready: true, gpus: 4 }), metadata: { name: `n${index}` } }))
      ledger.setPod(`p${index}`, watched(at(podOf(one), index)))
    }
    assert.strictEqual(ledger.freeSlots(small, ""), count * 3)
    looks = 0
    ledger.setPod("more", podOf({ ...one, state: "unbound" }))
    ledger.setPod("more", at(podOf(one), 0))
    assert.strictEqual(ledger.freeSlots(small, "p1"), count * 3)
    return looks
  }
  it("costs the same for one change and one query, however many pods and nodes there are", () => {
    assert.isAtMost(lookedAt(10), 4)
    assert.strictEqual(lookedAt(1_000), lookedAt(10))
  })
})
