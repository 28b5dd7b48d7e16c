import type { ThoughtReader } from "./ThoughtReader.ts"
import type { Read, ToolCallDelta, ToolCallReader } from "./ToolCallReader.ts"

/** How to read calls from an answer, and the finish reason of an answer with calls. */
export interface Calls {
  readonly reader: ToolCallReader
  readonly finish: "stop" | "tool_calls"
}

/** The readers for an answer; null if it has no such part. */
export interface Readers {
  readonly thought: ThoughtReader | null
  readonly calls: Calls | null
}

/** Everything that was read so far: reasoning, text for the client, and parts of calls. */
export interface AnswerParts extends Read {
  readonly reasoning: string
}

/** Joins the parts of each call. */
const joined = (deltas: ReadonlyArray<ToolCallDelta>) => {
  const calls = new Map<number, { id: string; type: "function"; function: { name: string; arguments: string } }>()
  for (const { function: part, id = "", index } of deltas) {
    const call = calls.get(index) ?? { id, type: "function", function: { name: part.name ?? "", arguments: "" } }
    call.function.arguments += part.arguments
    calls.set(index, call)
  }
  return [...calls.values()]
}

/** Reads reasoning, text and calls from a streamed answer, and collects them. */
export const reading = ({ calls, thought }: Readers) => {
  const deltas: Array<ToolCallDelta> = []
  let content = ""
  let reasoning = ""
  const keep = (parts: AnswerParts): AnswerParts => {
    reasoning += parts.reasoning
    content += parts.content
    deltas.push(...parts.calls)
    return parts
  }
  const readCalls = (text: string): Read => (calls === null ? { content: text, calls: [] } : calls.reader.push(text))
  const parted = (text: string) => (thought === null ? { reasoning: "", content: text } : thought.push(text))
  const push = (text: string): AnswerParts => {
    const part = parted(text)
    return { reasoning: part.reasoning, ...readCalls(part.content) }
  }
  return {
    push: (text: string) => keep(push(text)),
    /** The end of the answer. */
    finish: (text: string): AnswerParts => {
      const last = push(text)
      const left = thought === null ? { reasoning: "", content: "" } : thought.finish()
      const more = readCalls(left.content)
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
    /** The finish reason of an answer with calls. */
    finishOfCalls: calls?.finish ?? "stop"
  }
}

export type Reading = ReturnType<typeof reading>
