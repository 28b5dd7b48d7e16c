import type { ModelConfig, WeightParts } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { ModelFacts } from "./Start.ts"

const gib = 2 ** 30

/** Families whose published repositories have the experts of a layer in one tensor. */
const fusesExperts = /^(gpt_oss|llama4|qwen3_vl_moe|qwen3_5_moe|gemma4)/

const ReportedSizes = Schema.Struct({
  safetensors_bytes: Schema.optionalKey(Schema.Finite),
  checkpoint_gib: Schema.optionalKey(Schema.Finite),
  parameters: Schema.optionalKey(Schema.Finite)
})
const Quantization = Schema.Struct({
  quant_method: Schema.optionalKey(Schema.String),
  format: Schema.optionalKey(Schema.String),
  bits: Schema.optionalKey(Schema.Finite)
})

/** Bytes per value of a quantized projection, including its scales. */
const valueBytes = (config: ModelConfig, facts: ModelFacts): number => {
  const quantization = Option.getOrElse(Schema.decodeUnknownOption(Quantization)(facts.quantization), (): typeof Quantization.Type => ({}))
  const quantizationText = `${config.quantization} ${quantization.format ?? ""} ${JSON.stringify(facts.quantization)}`.toLowerCase()
  if (config.quantization === "none") return config.dtype === "float32" ? 4 : 2
  if (quantizationText.includes("mxfp4")) return 4.25 / 8
  if (quantizationText.includes("nvfp4") || quantizationText.includes("int4") || /awq|gptq/.test(quantizationText) || quantization.bits === 4) return 4.5 / 8
  return 1 + 4 / 16_384
}

/** Number of values by part, computed from the configuration, without norms and biases, which are about 0.1%. */
const valuesOf = (config: ModelConfig, facts: ModelFacts) => {
  const { hidden_size: hidden, num_attention_heads: heads, shape, vocab_size } = config
  const layers = config.num_layers
  const dense = shape?.intermediate_size ?? 4 * hidden
  const experts = shape?.experts ?? null
  const number = (name: string) => {
    const value = facts[name]
    return typeof value === "number" ? value : 0
  }
  const attention = (shape?.layers ?? []).reduce((sum, group) => {
    if (group.kind === "state") return sum + group.layers * 6 * hidden * hidden
    if (group.kind === "latent") {
      const query = number("q_lora_rank")
      const wide = heads * (number("qk_nope_head_dim") + number("qk_rope_head_dim"))
      return (
        sum +
        group.layers *
          ((query > 0 ? query * (hidden + wide) : hidden * wide) + hidden * group.latent_size + group.absorbed_values + heads * number("v_head_dim") * hidden)
      )
    }
    return sum + group.layers * hidden * (heads * group.head_size * 2 + group.kv_heads * (group.head_size + group.head_size_v))
  }, 0)
  const sparse = experts === null ? 0 : Math.max(0, layers - number("first_k_dense_replace"))
  const shared = number("shared_expert_intermediate_size") + number("n_shared_experts") * (experts?.intermediate_size ?? 0)
  return {
    embeddings: vocab_size * hidden * (shape?.tied_embeddings === true ? 1 : 2),
    attention,
    dense: 3 * hidden * ((layers - sparse) * dense + sparse * shared),
    experts: experts === null ? 0 : sparse * experts.count * (3 * hidden * experts.intermediate_size),
    towers:
      shape?.vision === null || shape?.vision === undefined
        ? 0
        : shape.vision.layers * (4 * shape.vision.hidden_size ** 2 + 3 * shape.vision.hidden_size * shape.vision.intermediate_size)
  }
}

export interface Checkpoint {
  readonly bytes: number
  readonly parts: WeightParts
}

/** The bytes of a model's tensors, in total and by part: from its headers or a report, otherwise computed. */
export const checkpointOf = (config: ModelConfig, facts: ModelFacts): Checkpoint => {
  const sizes = Option.getOrElse(Schema.decodeUnknownOption(ReportedSizes)(facts), (): typeof ReportedSizes.Type => ({}))
  const values = valuesOf(config, facts)
  const quantized = valueBytes(config, facts)
  const dense = config.quantization === "mxfp4" || /int4|nvfp4/.test(JSON.stringify(facts.quantization ?? "")) ? 2 : quantized
  const plain = config.dtype === "float32" ? 4 : 2
  const parts = {
    replicated: 0,
    key_value: 0,
    embeddings: values.embeddings * plain,
    towers: values.towers * plain,
    experts: values.experts * quantized,
    float32: 0,
    unloaded: 0
  }
  const worked = parts.embeddings + parts.towers + parts.experts + (values.attention + values.dense) * dense
  const reported =
    sizes.safetensors_bytes ??
    (sizes.checkpoint_gib === undefined ? undefined : sizes.checkpoint_gib * gib) ??
    (sizes.parameters === undefined || config.quantization !== "none" ? undefined : sizes.parameters * plain)
  const bytes = Math.round(reported ?? worked)
  const { experts } = config.shape ?? { experts: null }
  const isFused = experts !== null && fusesExperts.test(config.model_type) && /^(none|mxfp4)$/.test(config.quantization)
  const fused = isFused ? { fused_experts: Math.round(experts.count * 2 * config.hidden_size * experts.intermediate_size * quantized) } : {}
  const scale = bytes < worked ? bytes / worked : 1
  // Layers that predict additional tokens are stored but not loaded. A report includes them.
  const further = typeof facts.num_nextn_predict_layers === "number" ? facts.num_nextn_predict_layers : 0
  const unloaded = reported === undefined ? 0 : Math.max(0, Math.min(bytes - worked, (further * parts.experts) / Math.max(1, config.num_layers - 1)))
  return {
    bytes,
    parts: { ...parts, ...fused, unloaded, embeddings: parts.embeddings * scale, towers: parts.towers * scale, experts: parts.experts * scale }
  }
}
