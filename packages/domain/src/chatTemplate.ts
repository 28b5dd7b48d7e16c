/**
 * How a chat template writes tool calls. These names are Seatrial's own, because each engine names its parsers
 * differently.
 */
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

/** The features of a chat template that capabilities depend on. */
export interface TemplateFacts {
  readonly toolCallFormat: ToolCallFormat | null
  readonly reasoningFormat: ReasoningFormat | null
  /** Whether a variable of the template switches reasoning on and off. */
  readonly thinkingToggle: boolean
  /** Whether a variable of the template sets the effort of reasoning. */
  readonly effort: boolean
  /** Whether the template has a placeholder for images. */
  readonly images: boolean
}

// The first match counts: several formats share `<tool_call>` and differ in its content.
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

const blocks = [
  ["{#", "#}"],
  ["{%", "%}"],
  ["{{", "}}"]
] as const

/**
 * Removes string literals from Jinja code. An unterminated string extends to the end of the code, because a regular
 * expression that backtracks to another start would take hours for some templates.
 */
const withoutTexts = (code: string): string => {
  let result = ""
  let from = 0
  for (let at = 0; at < code.length; at++) {
    const mark = code[at]
    if (mark !== "'" && mark !== '"') continue
    result += `${code.slice(from, at)}''`
    for (at++; at < code.length && code[at] !== mark; at++) if (code[at] === "\\") at++
    from = at + 1
  }
  return result + code.slice(from)
}

/**
 * Reads a Jinja template: its text without comments, and the code of its blocks without string literals. It reads each
 * character once, because the template is untrusted input. Text after an unterminated block is ignored.
 */
const readJinja = (template: string): { readonly written: string; readonly code: string } => {
  const written: Array<string> = []
  const code: Array<string> = []
  const opening = /\{[#%{]/g
  let from = 0
  for (;;) {
    opening.lastIndex = from
    const start = opening.exec(template)?.index
    if (start === undefined) break
    const [open, close] = blocks.find(([mark]) => template.startsWith(mark, start)) ?? blocks[0]
    const end = template.indexOf(close, start + 2)
    if (end < 0) return { written: written.join(""), code: code.join("\n") }
    if (open === "{#") written.push(template.slice(from, start))
    else {
      written.push(template.slice(from, end + 2))
      code.push(withoutTexts(template.slice(start + 2, end)))
    }
    from = end + 2
  }
  written.push(template.slice(from))
  return { written: written.join(""), code: code.join("\n") }
}

const read = (template: string): TemplateFacts => {
  const { code, written } = readJinja(template)
  // A template without the `tools` variable cannot present tools to the model, even if it formats past calls.
  const takesTools = /(?<![.\w])tools\b/.test(code)
  return {
    toolCallFormat: takesTools ? first(toolCallMarks, written) : null,
    reasoningFormat: first(reasoningMarks, written),
    // Templates also use the name `thinking` for their own variables, so it counts only in a test for `is defined`.
    thinkingToggle: /(?<![.\w])(?:enable_thinking\b|thinking\s+is\s+(?:not\s+)?defined)/.test(code),
    effort: /(?<![.\w])reasoning_effort\b/.test(code),
    images: /<\|image_pad\|>|<image>|<\|image\|>|\[IMG\]|<start_of_image>|<\|vision_start\|>|["']image(?:_url)?["']/.test(written)
  }
}

let last: { readonly template: string; readonly facts: TemplateFacts } = { template: "", facts: read("") }

/** Reads the features of a pinned chat template. A repository without a template has none of them. */
export const readTemplate = (template: string | null): TemplateFacts => {
  // A preview evaluates several host classes in sequence with the same template.
  if (last.template !== (template ?? "")) last = { template: template ?? "", facts: read(template ?? "") }
  return last.facts
}
