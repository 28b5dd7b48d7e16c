/** How a chat template writes tool calls: our own names, since the engines' parsers are named differently from engine to engine. */
export type ToolCallFormat =
  | "deepseek_v3"
  | "functiongemma"
  | "glm45"
  | "gpt_oss"
  | "granite"
  | "hermes"
  | "kimi_k2"
  | "lfm2"
  | "llama3_json"
  | "minimax_m2"
  | "mistral"
  | "qwen3_coder"

/** How a chat template writes reasoning. */
export type ReasoningFormat = "gpt_oss" | "mistral" | "think"

/** What a chat template names, as far as capabilities depend on it. */
export interface TemplateFacts {
  readonly toolCallFormat: ToolCallFormat | null
  readonly reasoningFormat: ReasoningFormat | null
  /** Whether a variable of the template switches reasoning on and off. */
  readonly thinkingToggle: boolean
  /** Whether a variable of the template sets the effort of reasoning. */
  readonly effort: boolean
  /** Whether the template has a place for images. */
  readonly images: boolean
}

// The first that matches counts: what is written inside `<tool_call>` tells formats apart that share that mark.
const toolCallMarks: ReadonlyArray<readonly [format: ToolCallFormat, mark: RegExp]> = [
  ["gpt_oss", /<\|channel\|>commentary/],
  ["deepseek_v3", /<｜tool▁calls▁begin｜>/],
  ["kimi_k2", /<\|tool_calls_section_begin\|>/],
  ["minimax_m2", /<minimax:tool_call>/],
  ["functiongemma", /<start_function_call>/],
  ["lfm2", /<\|tool_call_start\|>/],
  ["mistral", /\[TOOL_CALLS\]/],
  ["glm45", /<arg_key>/],
  ["qwen3_coder", /<function=/],
  ["granite", /<\|tool_call\|>/],
  ["hermes", /<tool_call>/],
  ["llama3_json", /<\|python_tag\|>|\{"name": function name, "parameters": /]
]

const reasoningMarks: ReadonlyArray<readonly [format: ReasoningFormat, mark: RegExp]> = [
  ["gpt_oss", /<\|channel\|>analysis/],
  ["mistral", /\[THINK\]/],
  ["think", /<think>|<\/think>/]
]

const first = <A>(marks: ReadonlyArray<readonly [A, RegExp]>, text: string): A | null => marks.find(([, mark]) => mark.test(text))?.[0] ?? null

/** Reads what a pinned chat template names. A repository without one names nothing. */
export const readTemplate = (template: string | null): TemplateFacts => {
  // A remark of the template's authors is not what it writes.
  const text = (template ?? "").replace(/\{#.*?#\}/gs, "")
  // A template that is not given the tools cannot tell the model of them, whatever marks it knows from past turns.
  const takesTools = /\btools\b/.test(text)
  return {
    toolCallFormat: takesTools ? first(toolCallMarks, text) : null,
    reasoningFormat: first(reasoningMarks, text),
    thinkingToggle: /\b(?:enable_thinking|thinking)\s+(?:is|==|and|or|%\})|\bnot\s+(?:enable_thinking|thinking)\b/.test(text),
    effort: /\breasoning_effort\b/.test(text),
    images: /<\|image_pad\|>|<image>|<\|image\|>|\[IMG\]|<start_of_image>|<\|vision_start\|>|["']image(?:_url)?["']/.test(text)
  }
}
