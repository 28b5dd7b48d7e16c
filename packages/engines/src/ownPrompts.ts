import type { ModelConfig } from "@seatrial/domain"

type Family = Pick<ModelConfig, "architecture" | "model_type">

/**
 * Architectures for which vLLM chooses a special renderer (`ModelConfig.tokenizer_mode`). Cohere's renderer needs an
 * option that no deployment can set.
 */
const vllmArchitectures: ReadonlySet<string> = new Set([
  "DeepseekV32ForCausalLM",
  "DeepseekV4ForCausalLM",
  "DeepseekV4ForConditionalGeneration",
  "DeepseekV41ForCausalLM",
  "InklingForCausalLM",
  "InklingForConditionalGeneration",
  "KimiK3ForConditionalGeneration"
])

/**
 * Whether vLLM renders the prompts of a model without its chat template. This includes Harmony, which reads control
 * tokens in user text as text (`OnlineRenderer.use_harmony`).
 */
export const vllmOwnPrompts = ({ architecture, model_type }: Family): boolean => model_type === "gpt_oss" || vllmArchitectures.has(architecture)

/**
 * Tool call parsers that make SGLang render the prompts of their model family, for any model
 * (`resolve_chat_encoding_spec`).
 */
const sglangParsers: ReadonlySet<string> = new Set(["deepseekv32", "deepseekv4", "deepseekv41", "kimi_k3"])

/**
 * Architectures for which SGLang chooses a renderer (`resolve_chat_encoding_spec`). DeepSeek V3 is not listed, because
 * its renderer is used only if there is no template.
 */
const sglangArchitectures = /DeepseekV4|KimiK3|InklingForConditionalGeneration/

/** Model types for which SGLang has a built-in template (`MODEL_TYPE_TO_TEMPLATE`). */
const sglangTypes: ReadonlySet<string> = new Set([
  "deepseek-ocr",
  "deepseek_v41",
  "deepseek_vl_v2",
  "internvl_chat",
  "minicpmo",
  "minicpmv",
  "moss_vl",
  "multi_modality",
  "paddleocr_vl",
  "phi4mm",
  "unlimited-ocr",
  "whisper"
])

/** Whether SGLang renders the prompts of a model without its chat template. `toolCallParser`: the value of its flag. */
export const sglangOwnPrompts =
  (toolCallParser: unknown) =>
  ({ architecture, model_type }: Family): boolean =>
    (typeof toolCallParser === "string" && sglangParsers.has(toolCallParser)) || sglangArchitectures.test(architecture) || sglangTypes.has(model_type)
