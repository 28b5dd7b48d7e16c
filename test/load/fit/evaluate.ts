import { estimateFit, type HostClass, type Interval, type LayerGroup, type ModelConfig, sequenceBytes } from "@seatrial/domain"
import { vllmMemory } from "@seatrial/engines"
import { parseModelConfig } from "@seatrial/hub"
import { Result, Schema } from "effect"
import { checkpointOf } from "./checkpoint.ts"
import type { ModelFacts, Start } from "./Start.ts"

const gib = 2 ** 30

/** GPU memory that CUDA reports, if a start does not contain it. */
const cards: ReadonlyArray<readonly [RegExp, number]> = [
  [/B300/i, 268],
  [/B200/i, 178.4],
  [/H200|H20-141/i, 139.8],
  [/H20/i, 95.1],
  [/H100 NVL|94GB/i, 93.1],
  [/RTX PRO 6000/i, 94.97],
  [/H100|H800/i, 79.18],
  [/A100.*40|A100-SXM4-40/i, 39.5],
  [/A100/i, 79.25],
  [/A10G?\b/i, 22.1],
  [/L40S?|A6000|A40|RTX 6000/i, 44.4],
  [/5090/i, 31.36],
  [/4090|3090/i, 23.6],
  [/L4\b/i, 22.03],
  [/T4\b/i, 14.6],
  [/V100.*32/i, 31.7],
  [/V100/i, 15.8],
  [/GB10|Spark/i, 121.6]
]

/** Possible versions of a start that has no version or only a date. */
const versionsOf = ({ engine_version }: Start): ReadonlyArray<string> => {
  if (engine_version === undefined || engine_version === null) return ["0.10.2", "0.16.0", "0.19.0", "0.23.0"]
  if (/^\d{4}-\d{2}/.test(engine_version)) return ["0.19.0", "0.23.0"]
  // The V1 engine was optional in 0.7. From 0.8 on it is the default.
  if (/V1/.test(engine_version)) return ["0.8.5"]
  return [engine_version]
}

/** Possible limits of a start that has none: the defaults of a server and of an embedded engine. */
const flagsOf = (start: Start, memoryGib: number, version: string): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const explicitLimits = {
    ...(typeof start.max_num_batched_tokens === "number" ? { max_num_batched_tokens: start.max_num_batched_tokens } : {}),
    ...(typeof start.max_num_seqs === "number" ? { max_num_seqs: start.max_num_seqs } : {}),
    ...(typeof start.gpu_memory_utilization === "number" ? { gpu_memory_utilization: start.gpu_memory_utilization } : {}),
    ...(start.enforce_eager === true ? { enforce_eager: true } : {}),
    ...(typeof start.quantization === "string" ? { quantization: start.quantization } : {}),
    ...((start.dp ?? 1) > 1 ? { enable_expert_parallel: true, data_parallel_size: start.dp } : {})
  }
  if (typeof start.max_num_batched_tokens === "number" || /v?0\.[0-7]\./.test(version)) return [explicitLimits]
  return [explicitLimits, { ...explicitLimits, max_num_batched_tokens: memoryGib >= 70 && !/A100/.test(start.gpu) ? 16_384 : 8_192 }]
}

/** The configuration of one pipeline stage, with its share of the layers. */
const stageOf = (config: ModelConfig, stages: number): ModelConfig => {
  const { shape } = config
  if (stages === 1 || shape === undefined) return config
  const share = (group: LayerGroup): LayerGroup => ({ ...group, layers: Math.max(1, Math.floor(group.layers / stages)) })
  return { ...config, num_layers: Math.ceil(config.num_layers / stages), shape: { ...shape, layers: shape.layers.map(share) } }
}

export interface Evaluation {
  readonly start: Start
  /** The estimated KV cache in GiB. */
  readonly pool: Interval
  /** The measured KV cache, or null if the engine did not report it. */
  readonly measured: number | null
  readonly verdict: "fits" | "tight" | "refused"
  /** Whether the start failed because of memory. */
  readonly failed: boolean
  /** Concurrent sequences in the measured cache by the arithmetic of the fit, or null. */
  readonly concurrency: number | null
}

const decodeConfig = (facts: ModelFacts, model: string): ModelConfig => {
  const { architecture, quantization, ...rest } = facts
  const quantizationConfig = rest.quantization_config ?? quantization
  const plain = typeof quantizationConfig === "string" ? { quant_method: quantizationConfig } : quantizationConfig
  const method = Schema.decodeUnknownOption(Schema.Struct({ quant_method: Schema.String }))(plain)
  const config = {
    ...rest,
    architectures: rest.architectures ?? [architecture],
    ...(plain === undefined || plain === null ? {} : { quantization_config: method._tag === "Some" ? plain : { quant_method: "compressed-tensors" } })
  }
  return Result.getOrThrowWith(parseModelConfig(config, "BF16"), (problem) => new Error(`${model}: ${problem.reason}`))
}

/** The inputs of the estimate for a start: one for each possible version and limits. */
export const inputsOf = (start: Start, facts: ModelFacts) => {
  const fullConfig = decodeConfig(facts, start.model)
  const checkpoint = checkpointOf(fullConfig, facts)
  const stages = start.pp ?? 1
  const replicas = start.dp ?? 1
  const config = stageOf(fullConfig, stages)
  const memoryGib = start.gpu_memory_gib ?? cards.find(([pattern]) => pattern.test(start.gpu))?.[1] ?? 80
  const hostClass: HostClass = {
    name: "bench",
    runtimes: [{ runtime: "vllm", image: "vllm" }],
    gpu_pool: start.gpu,
    gpu_count: start.tp,
    gpu_memory_bytes: Math.round(memoryGib * gib),
    price_per_gpu_hour_micros: "1",
    simulated: false
  }
  // Experts are distributed over the replicas. Everything else is replicated.
  const experts = checkpoint.parts.experts
  const bytes = (checkpoint.bytes - experts + experts / replicas) / stages
  const scaled = {
    ...checkpoint.parts,
    experts: experts / replicas / stages,
    embeddings: checkpoint.parts.embeddings / stages,
    towers: checkpoint.parts.towers / stages
  }
  const dtype = /fp8|8bit|e4m3|e5m2/.test(start.kv_cache_dtype ?? "") ? "fp8" : "auto"
  return versionsOf(start).flatMap((version) =>
    flagsOf(start, memoryGib, version).map((engineFlags) => {
      const memory = vllmMemory(version)
      const input = {
        config,
        weightsBytes: Math.round(bytes),
        weightParts: scaled,
        hostClass,
        kvCacheDtype: dtype,
        contextLimit: fullConfig.native_context
      } as const
      const flags = Schema.decodeSync(Schema.Record(Schema.String, Schema.Json))(JSON.parse(JSON.stringify(engineFlags)))
      const fitInput = { ...input, engine: { memory, version }, engineFlags: flags, maxContext: start.max_model_len ?? Math.min(16, fullConfig.native_context) }
      const load = { config, flags: engineFlags, card: hostClass, maxContext: start.max_model_len ?? fullConfig.native_context }
      const layout = {
        gpuCount: start.tp,
        valueBytes: memory.kvValueBytes(config, dtype),
        stateValueBytes: 2,
        blockTokens: memory.blockTokens(load),
        stepTokens: memory.stepTokens(load),
        latentAlignment: memory.latentAlignment,
        statesPerSequence: memory.statesPerSequence(load)
      }
      return { asked: fitInput, sequence: sequenceBytes(config, layout, load.maxContext) }
    })
  )
}

/** Estimates a start. */
export const evaluate = (start: Start, facts: ModelFacts): Evaluation => {
  const answers = inputsOf(start, facts).map(({ asked, sequence }) => {
    const result = estimateFit(asked)
    const pool = "fit" in result ? result.components.pool : result.pool
    return { pool, verdict: "fit" in result ? result.fit.verdict : ("refused" as const), sequence }
  })
  const verdicts = answers.map(({ verdict }) => verdict)
  const measuredTokens = typeof start.kv_tokens === "number" && typeof start.available_kv_gib !== "number"
  const perToken =
    answers[0] === undefined || start.max_model_len === undefined || start.max_model_len === null ? null : answers[0].sequence / start.max_model_len
  const measured = start.available_kv_gib ?? (measuredTokens && perToken !== null ? ((start.kv_tokens ?? 0) * perToken) / gib : null)
  return {
    start,
    pool: { low: Math.min(...answers.map(({ pool }) => pool.low)) / gib, high: Math.max(...answers.map(({ pool }) => pool.high)) / gib },
    measured,
    verdict: verdicts.every((verdict) => verdict === "fits") ? "fits" : verdicts.every((verdict) => verdict === "refused") ? "refused" : "tight",
    failed: start.refused || start.refusal_kind !== undefined,
    concurrency: measured === null || answers[0] === undefined ? null : (measured * gib) / answers[0].sequence
  }
}
