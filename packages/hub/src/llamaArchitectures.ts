/** Architectures whose layers use Llama's module names (`vllm/model_executor/models`, each `load_weights`). */
export const likeLlama: ReadonlySet<string> = new Set([
  "LlamaForCausalLM",
  "MistralForCausalLM",
  "Mistral3ForConditionalGeneration",
  "Qwen2ForCausalLM",
  "Qwen3ForCausalLM",
  "Qwen2MoeForCausalLM",
  "Qwen3MoeForCausalLM",
  "MixtralForCausalLM",
  "GemmaForCausalLM",
  "Gemma2ForCausalLM",
  "Gemma3ForCausalLM",
  "GraniteForCausalLM",
  "OlmoForCausalLM",
  "Olmo2ForCausalLM",
  "SmolLM3ForCausalLM"
])
/**
 * Those that are identical to Llama: its norms, no extra layers, and a separate output head unless the configuration
 * ties it.
 */
export const asLlama: ReadonlySet<string> = new Set([
  "LlamaForCausalLM",
  "MistralForCausalLM",
  "Qwen2ForCausalLM",
  "Qwen3ForCausalLM",
  "Qwen2MoeForCausalLM",
  "Qwen3MoeForCausalLM",
  "MixtralForCausalLM"
])

/**
 * The prefixes of tensor names in some architectures. Without them, vLLM fails and SGLang skips the tensors (each
 * `load_weights`; SGLang completes the names of Qwen 3 and Gemma 3).
 */
export const beginnings = ["model.layers.", "model.embed_tokens.", "model.norm."]
export const withBeginnings: ReadonlySet<string> = new Set([
  "LlamaForCausalLM",
  "Qwen2ForCausalLM",
  "Qwen2MoeForCausalLM",
  "Qwen3MoeForCausalLM",
  "MixtralForCausalLM",
  "GemmaForCausalLM",
  "Gemma2ForCausalLM",
  "GraniteForCausalLM"
])
