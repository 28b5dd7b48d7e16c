import { estimateFit, type FitInput, type HostClass, type Interval, type LayerGroup, type ModelConfig, sequenceBytesOf } from "@seatrial/domain"
import { sglangMemory, vllmMemory } from "@seatrial/engines"
import { parseModelConfig } from "@seatrial/hub"
import { Result, Schema } from "effect"
import { memoryGibOf } from "./cards.ts"
import { checkpointOf } from "./checkpoint.ts"
import type { ModelFacts, Start } from "./Start.ts"

const gib = 2 ** 30

/** Possible versions of a start that has no version or only a date. */
const versionsOf = ({ engine, engine_version }: Start): ReadonlyArray<string> => {
  // SGLang's arithmetic is the same for all versions.
  if (engine === "sglang") return [engine_version ?? "unknown"]
  if (engine_version === undefined || engine_version === null) return ["0.10.2", "0.16.0", "0.19.0", "0.23.0"]
  if (/^\d{4}-\d{2}/.test(engine_version)) return ["0.19.0", "0.23.0"]
  // The V1 engine was optional in 0.7. From 0.8 on it is the default.
  if (/V1/.test(engine_version)) return ["0.8.5"]
  return [engine_version]
}

type Flags = Readonly<Record<string, boolean | number | string>>

/** The members that a start reports, under the engine's names. */
const reportedMembers = (members: Readonly<Record<string, boolean | number | string | null | undefined>>): Flags =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => (value === undefined || value === null || value === false ? [] : [[name, value] as const]))
  )

/** Whole experts are distributed over data-parallel replicas unless the start says otherwise. */
const distributesExperts = (start: Start): boolean => start.enable_expert_parallel ?? (start.dp ?? 1) > 1

const sglangFlagsOf = (start: Start): Flags =>
  reportedMembers({
    chunked_prefill_size: start.max_num_batched_tokens,
    max_running_requests: start.max_num_seqs,
    mem_fraction_static: start.gpu_memory_utilization,
    quantization: start.quantization,
    ep_size: distributesExperts(start) ? start.tp : null
  })

/** Possible limits of a start that has none: the defaults of a server and of an embedded engine. */
const flagsOf = (start: Start, memoryGib: number, version: string): ReadonlyArray<Flags> => {
  if (start.engine === "sglang") return [sglangFlagsOf(start)]
  const explicitLimits = reportedMembers({
    max_num_batched_tokens: start.max_num_batched_tokens,
    max_num_seqs: start.max_num_seqs,
    gpu_memory_utilization: start.gpu_memory_utilization,
    enforce_eager: start.enforce_eager,
    quantization: start.quantization,
    enable_expert_parallel: distributesExperts(start),
    data_parallel_size: (start.dp ?? 1) > 1 ? start.dp : null
  })
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
  const memoryGib = memoryGibOf(start)
  const runtime = start.engine ?? "vllm"
  const hostClass: HostClass = {
    name: "bench",
    runtimes: [{ runtime, image: runtime }],
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
      const fitInput: FitInput = {
        config,
        weightsBytes: Math.round(bytes),
        weightParts: scaled,
        engine: { memory: runtime === "sglang" ? sglangMemory : vllmMemory(version), version },
        hostClass,
        kvCacheDtype: dtype,
        engineFlags,
        maxContext: start.max_model_len ?? Math.min(16, fullConfig.native_context),
        contextLimit: fullConfig.native_context
      }
      return { asked: fitInput, sequence: sequenceBytesOf(fitInput, start.max_model_len ?? fullConfig.native_context) }
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
    failed: start.refused || typeof start.refusal_kind === "string",
    concurrency: measured === null || answers[0] === undefined ? null : (measured * gib) / answers[0].sequence
  }
}
