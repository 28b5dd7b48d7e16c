import { assert, describe, it } from "@effect/vitest"
import type { Pod } from "@seatrial/kube"
import { podHold } from "../../src/gpu/podHold.ts"
import { deploymentId, podClass } from "../observations.ts"

const pod = (resources: Readonly<Record<string, string>>): Pod => ({
  metadata: {
    name: "engine",
    uid: "u",
    labels: { "seatrial.dev/role": "engine", "seatrial.dev/deployment": deploymentId, "seatrial.dev/host-class": "local", "seatrial.dev/organization": "acme" }
  },
  spec: { nodeName: "n", containers: [{ name: "engine", resources: { limits: resources } }] }
})
const gpus = (resources: Readonly<Record<string, string>>, known: typeof podClass | undefined) => podHold(pod(resources), undefined, known, 0)?.placement.gpus

describe("the hold of an engine's pod", () => {
  it("counts the GPUs that it was created with, even if its host class is gone or names another resource", () => {
    assert.strictEqual(gpus({ "nvidia.com/gpu": "2", "rdma/hca": "1", memory: "1Gi" }, podClass), 2)
    assert.strictEqual(gpus({ "amd.com/gpu": "4", cpu: "2" }, undefined), 4)
    assert.strictEqual(gpus({ "nvidia.com/gpu": "2" }, { ...podClass, gpuResource: "nvidia.com/mig-1g.10gb" }), 2)
  })

  it("has the price of its host class if the pod's annotation is not a valid price", () => {
    const priced = (price: string) => {
      const engine = pod({ "nvidia.com/gpu": "1" })
      const annotations = { "seatrial.dev/price-per-gpu-hour": price }
      return podHold({ ...engine, metadata: { ...engine.metadata, annotations } }, undefined, podClass, 0)?.placement.pricePerGpuHour
    }
    assert.strictEqual(priced("7"), 7n)
    for (const price of ["-7", "9223372036854775808", "cheap"]) assert.strictEqual(priced(price), 1_000_000n)
  })
})
