import type { ThoughtReader } from "./ThoughtReader.ts"
import type { Read, ToolCallDelta, ToolCallReader } from "./ToolCallReader.ts"

/** How calls are read out of an answer, and what ends one that has some. */
export interface Calls {
  readonly reader: ToolCallReader
  readonly finish: "stop" | "tool_calls"
}

/** What an answer is read by; null where it has no such part. */
export interface Readers {
  readonly thought: ThoughtReader | null
  readonly calls: Calls | null
}

/** What has been read so far: what was thought, text for the caller, and parts of calls. */
export interface Told extends Read {
  readonly reasoning: string
}

/** The parts of calls joined, each call whole. */
const joined = (deltas: ReadonlyArray<ToolCallDelta>) => {
  const calls = new Map<number, { id: string; type: "function"; function: { name: string; arguments: string } }>()
  for (const { function: part, id = "", index } of deltas) {
    const call = calls.get(index) ?? { id, type: "function", function: { name: part.name ?? "", arguments: "" } }
    call.function.arguments += part.arguments
    calls.set(index, call)
  }
  return [...calls.values()]
}

/** Reads thought, text and calls out of an answer as it comes, and keeps them. */
export const reading = ({ calls, thought }: Readers) => {
  const deltas: Array<ToolCallDelta> = []
  let content = ""
  let reasoning = ""
  const keep = (told: Told): Told => {
    reasoning += told.reasoning
    content += told.content
    deltas.push(...told.calls)
    return told
  }
  const said = (text: string): Read => (calls === null ? { content: text, calls: [] } : calls.reader.push(text))
  const parted = (text: string) => (thought === null ? { reasoning: "", content: text } : thought.push(text))
  const push = (text: string): Told => {
    const part = parted(text)
    return { reasoning: part.reasoning, ...said(part.content) }
  }
  return {
    push: (text: string) => keep(push(text)),
    /** The last of it. */
    finish: (text: string): Told => {
      const last = push(text)
      const left = thought === null ? { reasoning: "", content: "" } : thought.finish()
      const more = said(left.content)
      const rest = calls === null ? { content: "", calls: [] } : calls.reader.finish()
      return keep({
        reasoning: last.reasoning + left.reasoning,
        content: last.content + more.content + rest.content,
        calls: [...last.calls, ...more.calls, ...rest.calls]
      })
    },
    text: () => content,
    reasoning: () => reasoning,
    calls: () => joined(deltas),
    called: () => calls !== null && calls.reader.count > 0,
    /** What tells that it ended with calls. */
    finishOfCalls: calls?.finish ?? "stop"
  }
}

export type Reading = ReturnType<typeof reading>
