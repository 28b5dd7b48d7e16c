/**
 * The simulated GPU nodes of the local cluster. Their memory is only counted, and the reference engine respects the
 * limit.
 */
export const localNodes = [
  { name: "sim-small-0", gpus: 4, product: "Seatrial-Sim-1GiB", memoryMiB: 1_024, labels: { "seatrial.dev/pool": "sim-small" } },
  { name: "sim-large-0", gpus: 4, product: "Seatrial-Sim-8GiB", memoryMiB: 8_192, labels: { "seatrial.dev/pool": "sim-large" } }
]

/** The first one is the default. The reference engine also runs in place of the others. */
const runtimes = [
  { runtime: "reference", image: "ghcr.io/seatrial/reference-engine:0.1.0" },
  { runtime: "vllm", image: "vllm/vllm-openai:v0.33.0" },
  { runtime: "sglang", image: "lmsysorg/sglang:v0.5.23" }
] as const

const hostClass = (name: string, product: string, gpuCount: number, gpuMemoryBytes: number, pricePerGpuHour: string) => ({
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "HostClass",
  metadata: { name },
  spec: {
    runtimes,
    gpuPool: product,
    gpuCount,
    gpuMemoryBytes,
    nodeSelector: { "nvidia.com/gpu.product": product },
    pricePerGpuHour,
    benchmarkSeconds: 4,
    bootDeadlineSeconds: 180,
    simulated: true
  }
})

/** The host classes of the local cluster. The prices are examples. */
export const localHostClasses = [
  hostClass("sim-small", "Seatrial-Sim-1GiB", 1, 2 ** 30, "100000"),
  hostClass("sim-large", "Seatrial-Sim-8GiB", 2, 8 * 2 ** 30, "400000")
]
