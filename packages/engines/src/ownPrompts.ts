import type { ModelConfig } from "@seatrial/domain"

type Family = Pick<ModelConfig, "architecture" | "model_type">

/** Renderers that vLLM chooses by the architecture (`ModelConfig.tokenizer_mode`). Cohere's is chosen by an option alone, which no deployment can give. */
const vllmArchitectures: ReadonlySet<string> = new Set([
  "DeepseekV32ForCausalLM",
  "DeepseekV4ForCausalLM",
  "DeepseekV4ForConditionalGeneration",
  "DeepseekV41ForCausalLM",
  "InklingForCausalLM",
  "InklingForConditionalGeneration",
  "KimiK3ForConditionalGeneration"
])

/** Whether vLLM writes a model's prompts itself: also Harmony's, which takes marks in a user's words for words (`OnlineRenderer.use_harmony`). */
export const vllmOwnPrompts = ({ architecture, model_type }: Family): boolean => model_type === "gpt_oss" || vllmArchitectures.has(architecture)

/** Readers of calls with which SGLang takes the prompts of their family too (`resolve_chat_encoding_spec`), whatever the model is. */
const sglangParsers: ReadonlySet<string> = new Set(["deepseekv32", "deepseekv4", "deepseekv41", "kimi_k3"])

/** What it finds in an architecture's name (`resolve_chat_encoding_spec`). Of DeepSeek V3 it does so only where there is no template. */
const sglangArchitectures = /DeepseekV4|KimiK3|InklingForConditionalGeneration/

/** Types of models to which it gives a template of its own (`MODEL_TYPE_TO_TEMPLATE`). */
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

/** Whether SGLang writes a model's prompts itself. `toolCallParser`: what reads the calls, as it is started. */
export const sglangOwnPrompts =
  (toolCallParser: unknown) =>
  ({ architecture, model_type }: Family): boolean =>
    (typeof toolCallParser === "string" && sglangParsers.has(toolCallParser)) || sglangArchitectures.test(architecture) || sglangTypes.has(model_type)
