import { dataFrame, eventFrame } from "@seatrial/domain"
import { type Call, chunk, done, finish, opening, openStream, type Script, usageFrame, wholeAnswer } from "./fakeEngine.ts"

const message = (more: object) => ({ id: "chatcmpl-1", type: "message", role: "assistant", model: "acme/tiny", content: [], stop_reason: null, ...more })

/** A message as vLLM streams it: first the complete prompt counts as input, and the last event corrects that. */
const messageFrames = (texts: ReadonlyArray<string>) => [
  eventFrame("message_start", { message: message({ usage: { input_tokens: 10, output_tokens: 0 } }) }),
  eventFrame("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  ...texts.map((text) => eventFrame("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
  eventFrame("content_block_stop", { index: 0 }),
  eventFrame("message_delta", {
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { input_tokens: 6, output_tokens: texts.length, cache_read_input_tokens: 4 }
  }),
  eventFrame("message_stop")
]

const response = (status: string, more: object = {}) => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  status,
  model: "acme/tiny",
  output: [],
  error: null,
  incomplete_details: null,
  parallel_tool_calls: true,
  tool_choice: "auto",
  tools: [],
  usage: null,
  store: false,
  ...more
})
const responseUsage = (output_tokens: number) => ({
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens,
  total_tokens: 10 + output_tokens
})
const output = (text: string) => [
  { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [], logprobs: [] }] }
]

const responseFrames = (texts: ReadonlyArray<string>) => {
  const part = { item_id: "msg_1", output_index: 0, content_index: 0 }
  const text = texts.join("")
  const completed = response("completed", { output: output(text), usage: responseUsage(texts.length) })
  const events: ReadonlyArray<readonly [string, object]> = [
    ["response.created", { response: response("in_progress") }],
    ["response.in_progress", { response: response("in_progress") }],
    ["response.output_item.added", { output_index: 0, item: { id: "msg_1", type: "message", role: "assistant", status: "in_progress", content: [] } }],
    ["response.content_part.added", { ...part, part: { type: "output_text", text: "", annotations: [], logprobs: [] } }],
    ...texts.map((delta) => ["response.output_text.delta", { ...part, delta, logprobs: [] }] as const),
    ["response.output_text.done", { ...part, text, logprobs: [] }],
    ["response.content_part.done", { ...part, part: { type: "output_text", text, annotations: [], logprobs: [] } }],
    ["response.output_item.done", { output_index: 0, item: output(text)[0] }],
    ["response.completed", { response: completed }]
  ]
  return events.map(([type, data], sequence_number) => eventFrame(type, { sequence_number, ...data }))
}

const textFrame = (text: string, reason: string | null = null) =>
  dataFrame({ id: "cmpl-1", object: "text_completion", created: 1, model: "acme/tiny", choices: [{ index: 0, text, logprobs: null, finish_reason: reason }] })

/**
 * The frames of a good stream of these texts on a path. The last one is the terminal frame. It has 10 input tokens and
 * one output token per text.
 */
export const framesOf = (path: string, texts: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (path === "/v1/messages") return messageFrames(texts)
  if (path === "/v1/responses") return responseFrames(texts)
  if (path === "/v1/completions") return [...texts.map((text) => textFrame(text)), textFrame("", "stop"), usageFrame(texts.length), done]
  return [opening, ...texts.map((text) => chunk(text)), finish("stop"), usageFrame(texts.length), done]
}

/** A good answer that is not streamed. */
export const wholeOf = (path: string, text: string): string => {
  if (path === "/v1/messages/count_tokens") return JSON.stringify({ input_tokens: 10 })
  if (path === "/v1/messages") {
    const usage = { input_tokens: 6, output_tokens: 3, cache_read_input_tokens: 4 }
    return JSON.stringify(message({ content: [{ type: "text", text }], stop_reason: "end_turn", stop_sequence: null, usage }))
  }
  if (path === "/v1/responses") return JSON.stringify(response("completed", { output: output(text), usage: responseUsage(3) }))
  if (path !== "/v1/completions") return wholeAnswer(text)
  const usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 }
  return JSON.stringify({ id: "cmpl-1", object: "text_completion", model: "acme/tiny", choices: [{ index: 0, text, finish_reason: "stop" }], usage })
}

const pathOf = ({ request }: Call) => request.url ?? ""
const isStream = ({ body }: Call) => body.includes('"stream":true')

/** An engine that answers well on every path, streamed or not. */
export const speaks =
  (texts: ReadonlyArray<string>): Script =>
  (call) => {
    if (isStream(call)) openStream(call).end(framesOf(pathOf(call), texts).join(""))
    else call.response.writeHead(200, { "content-type": "application/json" }).end(wholeOf(pathOf(call), texts.join("")))
  }

/** Sends `count` frames of a good stream and then calls `then`. */
const after =
  (frames: number, texts: ReadonlyArray<string>, then: (call: Call) => void): Script =>
  (call) => {
    openStream(call).write(framesOf(pathOf(call), texts).slice(0, frames).join(""), () => then(call))
  }

/** Observed faults of engines, by name. `frames` frames of a good stream of `texts` come first. */
export const misbehaviours = {
  /** The connection breaks. */
  dies: (frames: number, texts: ReadonlyArray<string>) => after(frames, texts, ({ response }) => response.destroy()),
  /** The stream ends normally, although frames are missing. */
  stops: (frames: number, texts: ReadonlyArray<string>) => after(frames, texts, ({ response }) => response.end()),
  /** No more frames come. */
  hangs: (frames: number, texts: ReadonlyArray<string>) => after(frames, texts, () => {}),
  /** An error in the format of the path that echoes the prompt. */
  fails: (frames: number, texts: ReadonlyArray<string>, code = 500) =>
    after(frames, texts, (call) => {
      const error = { message: "the prompt was: secret", type: "internal_error", param: null, code }
      const eventNames: Readonly<Record<string, string>> = {
        "/v1/messages": eventFrame("error", { error }),
        "/v1/responses": eventFrame("response.failed", { sequence_number: frames, response: response("failed", { error }) })
      }
      call.response.end(eventNames[pathOf(call)] ?? `${dataFrame({ error })}${done}`)
    }),
  /** All frames, with comments, IDs and reconnection times in between, and lines that end in CRLF. */
  decorates:
    (texts: ReadonlyArray<string>): Script =>
    (call) => {
      const frames = framesOf(pathOf(call), texts).map((frame, index) => `: comment\n\nretry: 10\n\n${frame.replace(/^(event|data)/, `id: ${index}\n$1`)}`)
      openStream(call).end(frames.join("").replaceAll("\n", "\r\n"))
    }
}
