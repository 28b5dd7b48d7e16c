import { type AdapterFacts, type AdapterSupport, type ModelConfig, type ModelShape, shapeOf } from "@seatrial/domain"

/**
 * Linear modules whose sizes SGLang knows in every model with a single kind of attention (`get_default_hidden_dim` in
 * `sglang/srt/lora/utils.py`).
 */
const known = new Set(["q_proj", "k_proj", "v_proj", "qkv_proj", "o_proj", "gate_proj", "up_proj", "gate_up_proj", "down_proj"])
const feedForward = new Set(["gate_proj", "up_proj", "gate_up_proj", "down_proj"])

const lastPart = (name: string) => name.slice(name.lastIndexOf(".") + 1)

/** Whether all layers have the same attention, which neither stores latents nor a state. */
const hasUniformAttention = ([first, ...rest]: ModelShape["layers"]): boolean => {
  if (first === undefined || first.kind === "latent" || first.kind === "state") return false
  return rest.every((group) => group.kind !== "latent" && group.kind !== "state" && group.kv_heads === first.kv_heads && group.head_size === first.head_size)
}

/** Why SGLang cannot apply an adapter of this form to any model, or null. */
const formIssue = (adapter: AdapterFacts): string | null => {
  if (adapter.rslora) return "sglang-0.5.23 scales every adapter by alpha / rank; this one is rank-stabilized (use_rslora)."
  if (!adapter.uniform) return "sglang-0.5.23 supports one rank and one alpha for all modules; this adapter has several (rank_pattern, alpha_pattern)."
  if (adapter.named_by === "pattern") return "sglang-0.5.23 reads target_modules as a list of names only; this adapter has an expression."
  const strange = [...adapter.listed.map(lastPart), ...adapter.targets].find((name) => !known.has(name))
  if (strange !== undefined) return `sglang-0.5.23 is not known to apply adapters to ${strange}.`
  return adapter.unpaired.length > 0 ? `sglang-0.5.23 computes some projections together and does not take ${adapter.unpaired.join(", ")}.` : null
}

/** Why SGLang cannot apply the adapter to this model, or null. */
const baseIssue = (adapter: AdapterFacts, config: ModelConfig): string | null => {
  const { experts, layers, vision } = shapeOf(config)
  if (!hasUniformAttention(layers)) return `sglang-0.5.23 is not known to apply adapters to ${config.architecture}, whose layers differ in their attention.`
  if (vision !== null) return `sglang-0.5.23 is not known to apply adapters to ${config.architecture}, which reads images.`
  return experts !== null && adapter.targets.some((name) => feedForward.has(name))
    ? `sglang-0.5.23 is not known to apply adapters to the experts of ${config.architecture}.`
    : null
}

const templateOfAdapterIssue = (adapter: AdapterFacts): string | null =>
  adapter.template === "embedded" ? "sglang-0.5.23 reads the chat template of an adapter only from chat_template.jinja." : null

/**
 * How SGLang 0.5.23 applies LoRA adapters (`sglang/srt/lora`): two slots with room for the modules of the adapter. One
 * slot is for requests without an adapter.
 */
export const sglangAdapters: AdapterSupport = {
  issue: (adapter, config) => formIssue(adapter) ?? baseIssue(adapter, config) ?? templateOfAdapterIssue(adapter),
  buffers: (adapter) => ({
    slots: 2,
    rank: adapter.rank,
    modules: [...new Set([...adapter.targets, ...adapter.listed.map(lastPart)])],
    embeddings: false,
    graphs: 0
  })
}
