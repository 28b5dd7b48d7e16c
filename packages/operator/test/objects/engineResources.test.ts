import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { enginePod } from "../../src/objects/enginePod.ts"
import { defaultMemoryBytes } from "../../src/objects/engineResources.ts"
import type { PodClass } from "../../src/resources/PodClass.ts"
import { podClass, revision, run } from "../observations.ts"

const engine = engineFor("reference")
if (engine === undefined) throw new Error("no engine")

const gib = 2 ** 30
const eight: PodClass = { ...podClass, sharedMemoryBytes: 8 * gib, hostClass: { ...podClass.hostClass, simulated: false, gpu_count: 8 } }
const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }

interface Container {
  readonly name: string
  readonly resources: { readonly requests: Readonly<Record<string, string>>; readonly limits: Readonly<Record<string, string>> }
}
const containersOf = (change: Partial<PodClass>): ReadonlyArray<Container> => {
  const { spec } = JSON.parse(JSON.stringify(enginePod({ run, revision, podClass: { ...eight, ...change }, engine, settings, weightsClaim: "weights" })))
  return [...spec.initContainers, ...spec.containers]
}
const engineOf = (change: Partial<PodClass>) => containersOf(change).find(({ name }) => name === "engine")?.resources

describe("an engine whose host class sets no cpu and no memoryBytes", () => {
  it("requests a core for each process, and the memory that the fit implies, and is not limited to them", () => {
    // 10 processes of 2 GiB, 8 times 256 sequences of 1,024 tokens of 5 bytes, and /dev/shm.
    const memory = String(20 * gib + 8 * 256 * 1_024 * 5 + 8 * gib)
    assert.deepStrictEqual(engineOf({}), {
      requests: { cpu: "10", memory, "nvidia.com/gpu": "8" },
      limits: { "nvidia.com/gpu": "8" }
    })
  })

  it("requests more for a larger tokenizer and a longer context", () => {
    const bytes = (change: { readonly tokenizer?: number; readonly context?: number }) =>
      defaultMemoryBytes(eight, {
        ...revision,
        facts: { ...revision.facts, files: [...revision.facts.files, { path: "tokenizer.json", size: change.tokenizer ?? 0, blob_id: "b", sha256: null }] },
        settings: { ...revision.settings, max_context: change.context ?? 1_024 }
      })
    const base = bytes({})
    assert.strictEqual(bytes({ tokenizer: 2 ** 24 }) - base, 2 * 8 * 2 ** 24)
    assert.strictEqual(bytes({ context: 131_072 }) - base, 8 * 256 * (131_072 - 1_024) * 5)
  })

  it("on simulated GPUs requests room for weights and KV cache, and a quarter of a core", () => {
    const { kv_cache_bytes, weights_bytes } = revision.estimate
    const requests = engineOf({ hostClass: podClass.hostClass })?.requests
    assert.deepStrictEqual([requests?.cpu, Number(requests?.memory)], ["250m", 2 ** 28 + weights_bytes + kv_cache_bytes])
  })
})

describe("an engine", () => {
  it("gets exactly the memory that its host class sets, and at least the processor time", () => {
    assert.deepStrictEqual(engineOf({ cpu: "16", memoryBytes: gib }), {
      requests: { cpu: "16", memory: String(gib), "nvidia.com/gpu": "8" },
      limits: { memory: String(gib), "nvidia.com/gpu": "8" }
    })
  })

  it("has the QoS class Guaranteed if its host class wants that: limits are requests in every container", () => {
    for (const change of [
      {},
      { cpu: "16", memoryBytes: gib },
      { weightsCache: { claimName: "c", storageClassName: null, sizeBytes: null, verify: "full" as const } }
    ]) {
      const containers = containersOf({ ...change, guaranteed: true })
      assert.isAbove(containers.length, 1)
      for (const { name, resources } of containers) {
        assert.deepStrictEqual(resources.limits, resources.requests, name)
        assert.containsAllKeys(resources.limits, ["cpu", "memory"])
      }
    }
  })
})
