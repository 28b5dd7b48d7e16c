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

const blocks = [
  ["{#", "#}"],
  ["{%", "%}"],
  ["{{", "}}"]
] as const

/** Code without the texts in it. A text without an end goes to the end of the code: an expression that tried another beginning would take hours for some templates. */
const withoutTexts = (code: string): string => {
  let kept = ""
  let from = 0
  for (let at = 0; at < code.length; at++) {
    const mark = code[at]
    if (mark !== "'" && mark !== '"') continue
    kept += `${code.slice(from, at)}''`
    for (at++; at < code.length && code[at] !== mark; at++) if (code[at] === "\\") at++
    from = at + 1
  }
  return kept + code.slice(from)
}

/**
 * A Jinja template without its remarks, and the code of its blocks without the texts in it. One look at each character, since anybody may write a template; what
 * follows a block without an end is left out.
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
  // A template that is not given the tools cannot tell the model of them, whatever marks it knows from past turns.
  const takesTools = /(?<![.\w])tools\b/.test(code)
  return {
    toolCallFormat: takesTools ? first(toolCallMarks, written) : null,
    reasoningFormat: first(reasoningMarks, written),
    // The shorter name is also one that templates give to variables of their own: it has to be one that may not be defined.
    thinkingToggle: /(?<![.\w])(?:enable_thinking\b|thinking\s+is\s+(?:not\s+)?defined)/.test(code),
    effort: /(?<![.\w])reasoning_effort\b/.test(code),
    images: /<\|image_pad\|>|<image>|<\|image\|>|\[IMG\]|<start_of_image>|<\|vision_start\|>|["']image(?:_url)?["']/.test(written)
  }
}

let last: { readonly template: string; readonly facts: TemplateFacts } = { template: "", facts: read("") }

/** Reads what a pinned chat template names. A repository without one names nothing. */
export const readTemplate = (template: string | null): TemplateFacts => {
  // A model is tried on one host class after the other, and its template is the same for all.
  if (last.template !== (template ?? "")) last = { template: template ?? "", facts: read(template ?? "") }
  return last.facts
}
