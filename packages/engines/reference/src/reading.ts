import { type Calls, joined } from "./Answers.ts"
import type { Read, ToolCallDelta } from "./ToolCallReader.ts"

/** Reads text and calls out of an answer as it comes, and keeps both. */
export const reading = (calls: Calls | null) => {
  const deltas: Array<ToolCallDelta> = []
  let content = ""
  const keep = (read: Read): Read => {
    content += read.content
    deltas.push(...read.calls)
    return read
  }
  const push = (text: string): Read => (calls === null ? { content: text, calls: [] } : calls.reader.push(text))
  return {
    push: (text: string) => keep(push(text)),
    /** The last of it. */
    finish: (text: string): Read => {
      const pushed = push(text)
      const rest = calls === null ? { content: "", calls: [] } : calls.reader.finish()
      return keep({ content: pushed.content + rest.content, calls: [...pushed.calls, ...rest.calls] })
    },
    text: () => content,
    calls: () => joined(deltas),
    called: () => calls !== null && calls.reader.count > 0
  }
}
