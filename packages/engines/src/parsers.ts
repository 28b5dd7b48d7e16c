import { type ReasoningFormat, readTemplate, type ToolCallFormat } from "@seatrial/domain"

type Engine = "vllm" | "sglang"
type Names = { readonly [Of in Engine]?: string }

/** The names of an engine's parsers for a model; null if the engine has none for it. */
export interface Parsers {
  readonly reasoning: string | null
  readonly toolCalls: string | null
}

/** The tool call parser of each engine by format. */
const toolParsers: Readonly<Record<ToolCallFormat, Names>> = {
  deepseek_v3: { vllm: "deepseek_v3", sglang: "deepseekv3" },
  functiongemma: { vllm: "functiongemma" },
  glm45: { vllm: "glm45", sglang: "glm45" },
  gpt_oss: { vllm: "openai", sglang: "gpt-oss" },
  granite: { vllm: "granite" },
  hermes: { vllm: "hermes", sglang: "hermes" },
  kimi_k2: { vllm: "kimi_k2", sglang: "kimi_k2" },
  lfm2: { vllm: "lfm2", sglang: "lfm2" },
  llama3_json: { vllm: "llama3_json", sglang: "llama3" },
  minimax_m2: { vllm: "minimax_m2", sglang: "minimax-m2" },
  mistral: { vllm: "mistral", sglang: "mistral" },
  qwen3_coder: { vllm: "qwen3_coder", sglang: "qwen3_coder" }
}

/** Model families that write a format differently, or for which an engine has a special parser. */
const toolParsersOfFamily: ReadonlyArray<readonly [architecture: RegExp, format: ToolCallFormat, names: Names]> = [
  [/^Qwen[23]/, "hermes", { vllm: "hermes", sglang: "qwen25" }],
  [/^Llama4/, "llama3_json", { vllm: "llama4_json", sglang: "pythonic" }]
]

const reasoningParsers: Readonly<Record<Exclude<ReasoningFormat, "think">, Names>> = {
  gpt_oss: { vllm: "openai_gptoss", sglang: "gpt-oss" },
  mistral: { vllm: "mistral", sglang: "mistral" }
}

/** Many models write `<think>`, but the beginning and the end differ. Only known families get a parser. */
const thinkers: ReadonlyArray<readonly [architecture: RegExp, names: Names]> = [
  [/^(?:Qwen3|InternS1)/, { vllm: "qwen3", sglang: "qwen3" }],
  [/^Glm4Moe/, { vllm: "glm45", sglang: "glm45" }],
  [/^Kimi(?:K2|K25)/, { vllm: "kimi_k2", sglang: "kimi_k2" }],
  [/^MiniMaxM2/, { vllm: "minimax_m2", sglang: "minimax" }],
  [/^NemotronH/, { vllm: "nemotron_v3", sglang: "nemotron_3" }],
  [/^Olmo3/, { vllm: "olmo3" }],
  [/^SeedOss/, { vllm: "seed_oss" }],
  [/^HunYuan/, { vllm: "hunyuan_a13b", sglang: "hunyuan" }],
  [/^Ernie4_5/, { vllm: "ernie45" }],
  [/^Step3/, { vllm: "step3", sglang: "step3" }]
]

/** Whether the prompt itself opens the reasoning, so that every answer contains reasoning. */
const alwaysThinks = (template: string) => {
  const prompt = template.indexOf("add_generation_prompt")
  return prompt >= 0 && template.includes("<think>", prompt)
}

/** DeepSeek's reasoning parsers: for models that always reason, and for those with a switch. */
const deepSeekR1: Readonly<Record<Engine, string>> = { vllm: "deepseek_r1", sglang: "deepseek-r1" }
const deepSeekV3: Readonly<Record<Engine, string>> = { vllm: "deepseek_v3", sglang: "deepseek-v3" }
/** DeepSeek 3.1 and later write plain arguments instead of a code block. */
const deepSeekV31Tools: Readonly<Record<Engine, string>> = { vllm: "deepseek_v31", sglang: "deepseekv31" }
/** SGLang's parser for models of the Qwen 3 family that always reason. */
const qwen3Thinking = "qwen3-thinking"

const deepSeekReasoning = (engine: Engine, template: string): string | null => {
  if (readTemplate(template).thinkingToggle) return deepSeekV3[engine]
  return alwaysThinks(template) ? deepSeekR1[engine] : null
}

/**
 * Models of other families with a switch reason as Qwen3 does, whose parser accepts an answer without reasoning. The
 * others are distilled from DeepSeek R1.
 */
const distilledReasoning = (engine: Engine, architecture: string, template: string): string | null => {
  if (!/^(?:Qwen2|Llama)For/.test(architecture) || !alwaysThinks(template)) return null
  return readTemplate(template).thinkingToggle ? "qwen3" : deepSeekR1[engine]
}

/** The parser for a model that writes `<think>`. */
const thinkReasoning = (engine: Engine, architecture: string, template: string): string | null => {
  if (/^Deepseek/.test(architecture)) return deepSeekReasoning(engine, template)
  const family = thinkers.find(([pattern]) => pattern.test(architecture))?.[1]
  if (family === undefined) return distilledReasoning(engine, architecture, template)
  if (engine === "sglang" && family.sglang === "qwen3" && !readTemplate(template).thinkingToggle) return qwen3Thinking
  return family[engine] ?? null
}

const reasoningOf = (engine: Engine, architecture: string, template: string): string | null => {
  const { reasoningFormat } = readTemplate(template)
  if (reasoningFormat === null) return null
  return reasoningFormat === "think" ? thinkReasoning(engine, architecture, template) : (reasoningParsers[reasoningFormat][engine] ?? null)
}

const toolCallsOf = (engine: Engine, architecture: string, template: string): string | null => {
  const { toolCallFormat } = readTemplate(template)
  if (toolCallFormat === null) return null
  if (toolCallFormat === "deepseek_v3" && !template.includes("```json")) return deepSeekV31Tools[engine]
  const family = toolParsersOfFamily.find(([pattern, format]) => format === toolCallFormat && pattern.test(architecture))?.[2]
  return (family ?? toolParsers[toolCallFormat])[engine] ?? null
}

/** The parsers for an architecture and its pinned chat template. */
export const parsersFor = (engine: Engine, architecture: string, template: string | null): Parsers =>
  template === null
    ? { reasoning: null, toolCalls: null }
    : { reasoning: reasoningOf(engine, architecture, template), toolCalls: toolCallsOf(engine, architecture, template) }

/** All parsers that `parsersFor` may return for an engine. A test looks them up in the engine's sources. */
export const parsersNamed = (engine: Engine): { readonly reasoning: ReadonlyArray<string>; readonly toolCalls: ReadonlyArray<string> } => {
  const of = (names: ReadonlyArray<Names>) => names.flatMap((name) => name[engine] ?? [])
  return {
    reasoning: [
      ...of([...Object.values(reasoningParsers), ...thinkers.map(([, names]) => names)]),
      deepSeekV3[engine],
      deepSeekR1[engine],
      ...(engine === "sglang" ? [qwen3Thinking] : [])
    ],
    toolCalls: [...of([...Object.values(toolParsers), ...toolParsersOfFamily.map(([, , names]) => names)]), deepSeekV31Tools[engine]]
  }
}
