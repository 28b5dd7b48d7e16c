import { accessSync, constants, existsSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Effect } from "effect"
import { StartError } from "./StartError.ts"

const image = "vllm/vllm-openai-cpu"
const product = "Seatrial-CPU"
const gpuMemoryMiB = 16_384

/**
 * Makes the local cluster run the vLLM at `path`, which must be built for processors. Its Python also computes
 * references if it has torch, as vLLM's own environment does. The GPU of the node is simulated, the engine is not.
 */
export const cpuVllm = Effect.fnUntraced(function* (path: string) {
  const program = resolve(path)
  const python = join(dirname(program), "python")
  yield* Effect.try({
    try: () => {
      accessSync(program, constants.X_OK)
      if (!statSync(program).isFile()) throw new Error("a folder")
    },
    catch: () => new StartError({ message: `--vllm: there is no program ${program}. Name the file \`vllm\` of a Python environment.` })
  })
  const environment = {
    CPU_VLLM: program,
    // With a thread for each processor, every step waits for the slowest one, which takes long if other programs run.
    OMP_NUM_THREADS: process.env.OMP_NUM_THREADS ?? "1",
    VLLM_CPU_OMP_THREADS_BIND: "nobind",
    VLLM_CPU_KVCACHE_SPACE: "1",
    VLLM_NO_USAGE_STATS: "1"
  }
  const referenceJob = { image: "ghcr.io/seatrial/seatrial:0.1.0", python, cpu: 1, memoryBytes: 2 ** 30, waitSeconds: 900 }
  return {
    // The second GPU is for a new revision while the earlier one serves.
    node: { name: "cpu-vllm-0", gpus: 2, product, memoryMiB: gpuMemoryMiB },
    images: { [image]: { path: [join(import.meta.dirname, "../../vllm"), dirname(program)], environment } },
    hostClass: {
      apiVersion: "seatrial.dev/v1alpha1",
      kind: "HostClass",
      metadata: { name: "cpu-vllm" },
      spec: {
        runtimes: [{ runtime: "vllm", image: `${image}:v0.33.0` }],
        gpuPool: product,
        gpuCount: 1,
        gpuMemoryBytes: gpuMemoryMiB * 2 ** 20,
        nodeSelector: { "nvidia.com/gpu.product": product },
        pricePerGpuHour: "100000",
        benchmarkSeconds: 20,
        bootDeadlineSeconds: 900,
        referenceJob: existsSync(python) ? referenceJob : { enabled: false }
      }
    }
  }
})
