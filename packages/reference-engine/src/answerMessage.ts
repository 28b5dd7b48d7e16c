import { randomUUID } from "node:crypto"
import type { ServerResponse } from "node:http"
import { eventFrame } from "@seatrial/domain"
import type { Ending, Piece } from "./AnswerText.ts"
import type { Booted } from "./Boot.ts"
import { generate } from "./Generation.ts"
import type { ConversationRequest } from "./messages.ts"
import { type AnswerParts, type Reading, reading } from "./reading.ts"
import type { Seams } from "./Seams.ts"
import type { Speech } from "./Speech.ts"
import { notANumber, openEventStream, sendError, sendJson } from "./sending.ts"

const decoded = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** A random value without meaning, as in vLLM. */
const signature = () => randomUUID().replaceAll("-", "")

type BlockType = "text" | "thinking" | "tool_use"

/** Writes the events of a streamed message. */
class MessageStream {
  private readonly response: ServerResponse
  private readonly sendsEvent: Seams["sendsEvent"]
  private isOpen = false
  /** The open block. */
  private block: BlockType | null = null
  private index = 0

  constructor(response: ServerResponse, sendsEvent: Seams["sendsEvent"]) {
    this.response = response
    this.sendsEvent = sendsEvent
  }

  event(data: { readonly type: string }) {
    if (!this.response.destroyed && this.sendsEvent?.(data.type) !== false) this.response.write(eventFrame(data.type, data))
  }

  /** Starts the stream, if it has not started. */
  open(message: object) {
    if (this.isOpen) return
    this.isOpen = true
    openEventStream(this.response)
    this.event({ type: "message_start", ...{ message } })
  }

  write({ calls, content, reasoning }: AnswerParts) {
    if (reasoning !== "") {
      if (this.block !== "thinking") this.start("thinking", { type: "thinking", thinking: "" })
      this.delta({ type: "thinking_delta", thinking: reasoning })
    }
    if (content !== "") {
      if (this.block !== "text") this.start("text", { type: "text", text: "" })
      this.delta({ type: "text_delta", text: content })
    }
    for (const { function: part, id: call } of calls) {
      if (call !== undefined) this.start("tool_use", { type: "tool_use", id: call, name: part.name ?? "", input: {} })
      if (part.arguments !== "") this.delta({ type: "input_json_delta", partial_json: part.arguments })
    }
  }

  /** Closes the open block. */
  close() {
    if (this.block === null) return
    if (this.block === "thinking") this.delta({ type: "signature_delta", signature: signature() })
    this.event({ type: "content_block_stop", ...{ index: this.index } })
    this.block = null
    this.index++
  }

  private start(type: BlockType, content_block: object) {
    this.close()
    this.block = type
    this.event({ type: "content_block_start", ...{ index: this.index, content_block } })
  }

  private delta(part: object) {
    this.event({ type: "content_block_delta", ...{ index: this.index, delta: part } })
  }
}

/** Why the message ended. */
const stopOf = (ending: Ending, answer: Reading) => {
  const isStopped = typeof ending.stop === "string" && ending.reason === "stop"
  const isCall = answer.called() && ending.reason === "stop" && ending.stop === null
  return {
    stop_reason: isCall ? "tool_use" : ending.reason === "length" ? "max_tokens" : isStopped ? "stop_sequence" : "end_turn",
    stop_sequence: isStopped ? ending.stop : null
  }
}

/** The blocks of a complete message. */
const contentOf = (answer: Reading): ReadonlyArray<object> => [
  ...(answer.reasoning() === "" ? [] : [{ type: "thinking", thinking: answer.reasoning(), signature: signature() }]),
  ...(answer.text() === "" ? [] : [{ type: "text", text: answer.text() }]),
  ...answer.calls().map(({ function: part, id }) => ({ type: "tool_use", id, name: part.name, input: decoded(part.arguments) }))
]

/**
 * Writes one message in Anthropic's format, complete or as a stream, and aborts its generation when the connection of
 * the client closes.
 */
export const answerMessage = ({ engine }: Booted, speech: Speech, request: ConversationRequest, requestId: string, response: ServerResponse) => {
  const { body, plan } = request
  const answer = reading(request.makeReaders())
  const model = speech.reportedName(engine.settings, body.model)
  const message = { id: `msg_${requestId}`, type: "message", role: "assistant", model, stop_sequence: null, stop_reason: null }
  const started = { ...message, content: [], usage: { input_tokens: plan.prompt.length, output_tokens: 0 } }
  const usage = ({ cachedTokens, completionTokens }: Piece) => ({
    ...(engine.settings.enablePromptTokensDetails ? { cache_read_input_tokens: cachedTokens } : {}),
    input_tokens: plan.prompt.length - (engine.settings.enablePromptTokensDetails ? cachedTokens : 0),
    output_tokens: completionTokens
  })
  const stream = new MessageStream(response, engine.seams.sendsEvent)
  const onPiece = ({ text }: Piece) => {
    const parts = answer.push(text)
    if (body.stream !== true) return
    stream.open(started)
    stream.write(parts)
  }
  const endStream = (ending: Ending) => {
    if (response.destroyed) return
    stream.open(started)
    if (ending.reason === "error") {
      stream.event({ type: "error", ...{ error: { type: "internal_error", message: notANumber.message } } })
    } else {
      stream.write(answer.finish(ending.text))
      stream.close()
      stream.event({ type: "message_delta", ...{ delta: stopOf(ending, answer), usage: usage(ending) } })
      stream.event({ type: "message_stop" })
    }
    response.end()
  }
  const endWhole = (ending: Ending) => {
    if (ending.reason === "error") return sendError(response, speech, notANumber)
    answer.finish(ending.text)
    sendJson(response, 200, { ...message, content: contentOf(answer), ...stopOf(ending, answer), usage: usage(ending) })
  }
  const ticket = generate(engine, body, plan, onPiece, body.stream === true ? endStream : endWhole)
  response.once("close", ticket.abort)
}
