/** The data of the last event of a stream. OpenAI's paths require it; some engines send it on every path. */
export const streamEnd = "[DONE]"

/** The data of one line of an event stream; null for a line without data: a comment, an event name or a blank line. */
export const dataOfLine = (line: string): string | null => (line.startsWith("data:") ? line.slice(5).trim() : null)

/** The data of each event of a complete stream, whose events have one line of data each. Without the end marker. */
export const streamEvents = (stream: string): ReadonlyArray<string> => {
  const events = stream.split(/\r?\n/).flatMap((line) => dataOfLine(line) ?? [])
  return events.at(-1) === streamEnd ? events.slice(0, -1) : events
}

/** An event without a name: a chunk of a chat or completion, or the end marker. */
export const dataFrame = (data: object | string): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`

/** An event named after its type: a part of a message or response. */
export const eventFrame = (type: string, fields: object = {}): string => `event: ${type}\n${dataFrame({ type, ...fields })}`
