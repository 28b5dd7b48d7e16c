import type { RunRevision } from "@seatrial/store"
import type { PodClass } from "../resources/PodClass.ts"

const mib = 2 ** 20
const gib = 2 ** 30

/** The processes of an engine that use no GPU: the HTTP server with the tokenizer, and the scheduler. */
const hostProcesses = 2
/** Host memory of Python with PyTorch, CUDA and NCCL, for each process. A rule of thumb, rounded up. */
const processBytes = 2 * gib
/** Memory of a loaded tokenizer for each byte of its file. A rule of thumb, rounded up. */
const tokenizerFactor = 8
/** Sequences for which an engine reserves host buffers: the most that the engines' adapters choose by themselves. */
const sequences = 256
/** Bytes of a token in these buffers: its ID, and whether it is one. */
const tokenBytes = 5

const tokenizerFiles = /(?:^|\/)(?:tokenizer\.json|tokenizer\.model|tekken\.json|vocab\.json|merges\.txt)$/u

/**
 * The CPU that an engine requests if its host class sets none: one core for each of its busy processes, which are one
 * for each GPU and two more. Source: vLLM, docs/configuration/optimization.md: one API server, one engine core with a
 * busy loop and one worker for each GPU, so that 2 + N cores are the minimum for N GPUs. The same is requested for
 * other engines. A simulated GPU has no worker: the reference engine is one process.
 */
export const defaultCpu = ({ hostClass: { gpu_count, simulated } }: Pick<PodClass, "hostClass">): string =>
  simulated ? "250m" : String(gpu_count + hostProcesses)

/**
 * The host memory that an engine requests if its host class sets none, in bytes: the programs, the tokenizer (loaded by
 * both host processes), the buffers of each worker for the token IDs of all its sequences (256 sequences of
 * max_context; vLLM: `token_ids_cpu` and `is_token_ids` in vllm/v1/worker/gpu_input_batch.py), and /dev/shm, which
 * counts as memory of the pod. Page-locked staging buffers are part of the 2 GiB of each process. No flag that Seatrial
 * accepts moves weights or KV cache to host memory. Weights do not count: the files are mapped, and the kernel can drop
 * their pages. On simulated GPUs weights and KV cache are in host memory.
 */
export const defaultMemoryBytes = ({ hostClass, sharedMemoryBytes }: Pick<PodClass, "hostClass" | "sharedMemoryBytes">, revision: RunRevision): number => {
  const { estimate, facts, settings } = revision
  if (hostClass.simulated) return 256 * mib + estimate.weights_bytes + estimate.kv_cache_bytes
  const tokenizer = facts.files.reduce((sum, { path, size }) => sum + (tokenizerFiles.test(path) ? size : 0), 0)
  const buffers = sequences * settings.max_context * tokenBytes
  const exact =
    (hostProcesses + hostClass.gpu_count) * processBytes + hostProcesses * tokenizerFactor * tokenizer + hostClass.gpu_count * buffers + sharedMemoryBytes
  return Math.ceil(exact / mib) * mib
}

/** Room on the node's disk for the volumes of the engine. */
const diskRequest = ({ compileCache, scratch }: PodClass) => {
  const bytes = (scratch.requestBytes ?? 0) + (compileCache?.requestBytes ?? 0)
  return bytes === 0 ? {} : { "ephemeral-storage": String(bytes) }
}

/**
 * The resources of the engine's container. What the host class sets is exact: the memory is also the limit. An estimate
 * is only requested, because an engine must not be killed for exceeding it. With requests, the engine is not the first
 * to be evicted, and gets processor time in proportion. With `guaranteed`, all limits are the requests.
 */
export const engineResources = (podClass: PodClass, revision: RunRevision) => {
  const { extraResources, gpuResource, guaranteed, hostClass, memoryBytes, resourceClaims } = podClass
  const exact = { [gpuResource]: String(hostClass.gpu_count), ...extraResources }
  const cpu = { cpu: podClass.cpu ?? defaultCpu(podClass) }
  const memory = { memory: String(memoryBytes ?? defaultMemoryBytes(podClass, revision)) }
  return {
    requests: { ...cpu, ...memory, ...diskRequest(podClass), ...exact },
    limits: { ...(guaranteed ? cpu : {}), ...(guaranteed || memoryBytes !== null ? memory : {}), ...exact },
    ...(resourceClaims.length === 0 ? {} : { claims: resourceClaims.map(({ name }) => ({ name })) })
  }
}

/** Resources of an init container. */
interface Resources {
  readonly requests: { readonly cpu: string; readonly memory: string }
  readonly limits: { readonly memory: string }
}

/**
 * The resources of an init container. For the QoS class Guaranteed every container needs limits that are its requests.
 * That costs nothing: init containers run before the engine, so that the pod requests the larger of the two.
 */
export const initResources = (podClass: PodClass, { limits, requests }: Resources) => {
  if (!podClass.guaranteed) return { limits, requests }
  const exact = { cpu: podClass.cpu ?? defaultCpu(podClass), memory: limits.memory }
  return { limits: exact, requests: exact }
}
