import { assert, describe, it } from "@effect/vitest"
import type { Node, Pod } from "@seatrial/kube"
import { Option } from "effect"
import { hostClassStatus, modelsByClass } from "../../src/classes/hostClassStatus.ts"
import { makeGpuLedger } from "../../src/gather/capacity/GpuLedger.ts"
import { noHardware } from "../../src/gather/capacity/hardware.ts"
import type { HostClassResource } from "../../src/resources/HostClassResource.ts"
import type { ModelDeployment, ModelDeploymentStatus } from "../../src/resources/ModelDeployment.ts"
import { toPodClass } from "../../src/resources/PodClass.ts"
import { podClass } from "../observations.ts"
import { hostClassCases } from "./ruleCases.ts"

const spec = hostClassCases[0]?.[1]
if (spec === undefined) throw new Error("no plain host class")
const object = (change: Partial<HostClassResource["spec"]> = {}, name = "local", generation = 3): HostClassResource => ({
  metadata: { name, generation },
  spec: { ...spec, ...change }
})
const capacity = { nodes: 2, openNodes: 1, gpus: 8, freeGpus: 6, engines: 0 }
const statusFor = (of: HostClassResource, models: ReadonlyArray<string> = [], engines = 0, now = 0, hardware = noHardware) =>
  hostClassStatus({ object: of, capacity: { ...capacity, engines }, hardware, models, namespace: "seatrial", now })
const condition = (status: ReturnType<typeof statusFor>, type: string) => status.conditions?.find((one) => one.type === type)

describe("a host class", () => {
  const refusals: ReadonlyArray<readonly [reason: string, object: HostClassResource, says: RegExp]> = [
    ["SeveralNodesNotAvailable", object({ nodes: 2 }), /nodes: 2, which is not supported yet/],
    ["InvalidNodeSelector", object({ nodeSelector: { "Not a label": "x" } }), /Not a label=x/],
    ["InvalidNodeSelector", object({ nodeSelector: { zone: "-" } }), /zone=-/],
    ["InvalidName", object({}, "rule.dots"), /63 lowercase letters/],
    ["Invalid", object({ maxGpus: 8 }), /requires autoscaling/]
  ]
  for (const [reason, refused, says] of refusals) {
    it(`on which nothing can be deployed says so: ${says.source}`, () => {
      const accepted = condition(statusFor(refused), "Accepted")
      assert.deepInclude(accepted, { status: "False", reason, observedGeneration: 3 })
      assert.match(accepted?.message ?? "", says)
    })
  }

  it("shows its capacity and its models, ten by name", () => {
    const models = Array.from({ length: 12 }, (_, index) => `acme/m${String(index).padStart(2, "0")}`)
    const status = statusFor(object(), models)
    assert.deepInclude(status, { nodes: 2, openNodes: 1, gpus: 8, freeGpus: 6, models: 12, modelNames: models.slice(0, 10), observedGeneration: 3 })
    assert.deepInclude(condition(status, "Accepted"), { status: "True", reason: "Accepted" })
    assert.include(condition(status, "InUse")?.message, "acme/m09 and 2 more")
    assert.deepInclude(condition(statusFor(object()), "InUse"), { status: "False", reason: "Unused" })
    assert.include(condition(statusFor(object(), [], 1), "InUse")?.message, "1 engine pod")
  })

  it("keeps the times of its conditions while they do not change, so that no write is needed", () => {
    const first = statusFor(object(), ["acme/a"])
    assert.deepStrictEqual(statusFor({ ...object(), status: first }, ["acme/a"], 0, 9_000), first)
    const later = statusFor({ ...object(), status: first }, [], 0, 9_000)
    assert.deepStrictEqual(
      later.conditions?.map(({ lastTransitionTime }) => Date.parse(lastTransitionTime)),
      [0, 0, 9_000]
    )
  })

  it("lists serving models and models with unfinished runs, each once, and none whose run is finished", () => {
    const shown = (status: ModelDeploymentStatus): ModelDeployment => ({ metadata: { name: "x" }, spec: { source: { repo: "a/b" } }, status })
    const objects = [
      shown({ model: "acme/b", hostClass: "local", phase: "activated", endpoint: "acme/b" }),
      shown({ model: "acme/a", hostClass: "local", phase: "booting" }),
      shown({ model: "acme/b", hostClass: "local", phase: "queued" }),
      shown({ model: "acme/c", hostClass: "local", phase: "failed" }),
      shown({ model: "acme/d", hostClass: "local", phase: "activated" }),
      shown({ model: "acme/e", hostClass: "large", phase: "failed", endpoint: "acme/e" }),
      shown({ model: "acme/f", phase: "screening" })
    ]
    assert.deepStrictEqual(
      [...modelsByClass(objects)],
      [
        ["local", ["acme/a", "acme/b"]],
        ["large", ["acme/e"]]
      ]
    )
  })

  describe("compares its nodes' labels with its specification:", () => {
    const memory = "nvidia.com/gpu.memory"
    const matching = (labels: ReadonlyArray<Record<string, string>>, change: Partial<HostClassResource["spec"]>) => {
      const ledger = makeGpuLedger()
      const status = { allocatable: { "nvidia.com/gpu": "4" } }
      for (const [index, each] of labels.entries()) ledger.setNode(`n${index}`, { metadata: { name: `n${index}`, labels: each }, status })
      const of = object(change)
      return condition(statusFor(of, [], 0, 0, ledger.hardware(Option.getOrThrow(toPodClass(of)))), "HardwareMatches")
    }
    const gib = 2 ** 30
    const cases: ReadonlyArray<
      readonly [what: string, labels: ReadonlyArray<Record<string, string>>, spec: object, status: "True" | "False" | "Unknown", reason: string]
    > = [
      ["no label", [{}], {}, "Unknown", "NotReported"],
      ["exactly its memory", [{ [memory]: "1024" }], {}, "True", "Matches"],
      ["the smallest GPU counts", [{ [memory]: "81559" }, { [memory]: "1023" }], {}, "False", "MemoryTooLarge"],
      [
        "GPUs of other nodes do not count",
        [
          { [memory]: "2048", card: "a" },
          { [memory]: "1", card: "b" }
        ],
        { nodeSelector: { card: "a" } },
        "True",
        "Matches"
      ],
      [
        "a slice has its own label",
        [{ [memory]: "81559", "nvidia.com/mig-1g.10gb.memory": "512" }],
        { gpuResource: "nvidia.com/mig-1g.10gb" },
        "False",
        "MemoryTooLarge"
      ],
      ["a shared GPU has the memory of the GPU", [{ [memory]: "1024" }], { gpuResource: "nvidia.com/gpu.shared" }, "True", "Matches"],
      ["several time-sliced GPUs", [{ [memory]: "81559", "nvidia.com/gpu.sharing-strategy": "time-slicing" }], { gpuCount: 2 }, "False", "SharedGpus"],
      ["several MIG slices", [{ "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb" }], { gpuCount: 2 }, "False", "SharedGpus"],
      ["more GPUs than a node has", [{ [memory]: "81559" }], { gpuCount: 5 }, "False", "TooFewGpus"],
      ["as many GPUs as a node has", [{ [memory]: "81559" }], { gpuCount: 4 }, "True", "Matches"],
      ["nodes that an autoscaler adds may have more", [{ [memory]: "81559" }], { gpuCount: 5, autoscaling: true }, "True", "Matches"],
      ["several whole GPUs", [{ [memory]: "81559", "nvidia.com/gpu.sharing-strategy": "none" }], { gpuCount: 2, gpuMemoryBytes: gib }, "True", "Matches"]
    ]
    for (const [what, labels, change, status, reason] of cases) {
      it(what, () => assert.deepInclude(matching(labels, change), { status, reason }))
    }
  })

  it("counts nodes with its labels, the open ones among them, their GPUs, and the free ones", () => {
    const ledger = makeGpuLedger()
    const node = (name: string, labels: Record<string, string>, ready: boolean): Node => ({
      metadata: { name, labels },
      status: { allocatable: { "nvidia.com/gpu": "4" }, conditions: [{ type: "Ready", status: ready ? "True" : "False" }] }
    })
    for (const each of [node("a", { kind: "x" }, true), node("b", { kind: "x" }, false), node("c", {}, true)]) ledger.setNode(each.metadata.name, each)
    const pod = (name: string, phase: string): Pod => ({
      metadata: { name, labels: { "seatrial.dev/host-class": "local", "seatrial.dev/organization": "acme" } },
      spec: { nodeName: "a", containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": "1" } } }] },
      status: { phase }
    })
    for (const each of [pod("runs", "Running"), pod("ended", "Failed")]) ledger.setPod(each.metadata.name, each)
    assert.deepStrictEqual(ledger.capacity({ ...podClass, nodeSelector: { kind: "x" } }), { nodes: 2, openNodes: 1, gpus: 4, freeGpus: 3, engines: 1 })
  })
})
