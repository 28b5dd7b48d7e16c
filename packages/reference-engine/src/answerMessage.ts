import { randomUUID } from "node:crypto"
import type { ServerResponse } from "node:http"
import { eventFrame } from "@seatrial/domain"
import type { Booted } from "./Boot.ts"
import { type Ending, generate, type Piece } from "./Generation.ts"
import type { ConversationRequest } from "./messages.ts"
import { type AnswerParts, reading } from "./reading.ts"
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

/**
 * Writes one message in Anthropic's format, complete or as a stream, and aborts its generation when the connection of
 * the client closes.
 */
export const answerMessage = ({ engine }: Booted, speech: Speech, asked: ConversationRequest, requestId: string, response: ServerResponse) => {
  const { body, plan } = asked
  const answer = reading(asked.makeReaders())
  const id = `msg_${requestId}`
  const model = speech.reportedName(engine.settings, body.model)
  const message = { id, type: "message", role: "assistant", model, stop_sequence: null, stop_reason: null }
  const usage = ({ cachedTokens, completionTokens }: Piece) => ({
    ...(engine.settings.enablePromptTokensDetails ? { cache_read_input_tokens: cachedTokens } : {}),
    input_tokens: plan.prompt.length - (engine.settings.enablePromptTokensDetails ? cachedTokens : 0),
    output_tokens: completionTokens
  })
  const stopOf = (ending: Ending) => {
    const stopped = typeof ending.stop === "string" && ending.reason === "stop"
    const ended = answer.called() && ending.reason === "stop" && ending.stop === null
    return {
      stop_reason: ended ? "tool_use" : ending.reason === "length" ? "max_tokens" : stopped ? "stop_sequence" : "end_turn",
      stop_sequence: stopped ? ending.stop : null
    }
  }

  let opened = false
  /** The open block. */
  let block: "text" | "thinking" | "tool_use" | null = null
  let index = 0
  const event = (data: { readonly type: string }) => {
    if (!response.destroyed && engine.seams.sendsEvent?.(data.type) !== false) response.write(eventFrame(data.type, data))
  }
  const open = () => {
    if (opened) return
    opened = true
    openEventStream(response)
    const started = { type: "message_start", message: { ...message, content: [], usage: { input_tokens: plan.prompt.length, output_tokens: 0 } } }
    event(started)
  }
  const close = () => {
    if (block === null) return
    if (block === "thinking") delta({ type: "signature_delta", signature: signature() })
    event({ type: "content_block_stop", ...{ index } })
    block = null
    index++
  }
  const start = (type: "text" | "thinking" | "tool_use", content_block: object) => {
    close()
    block = type
    event({ type: "content_block_start", ...{ index, content_block } })
  }
  const delta = (part: object) => event({ type: "content_block_delta", ...{ index, delta: part } })
  const write = ({ calls, content, reasoning }: AnswerParts) => {
    if (reasoning !== "") {
      if (block !== "thinking") start("thinking", { type: "thinking", thinking: "" })
      delta({ type: "thinking_delta", thinking: reasoning })
    }
    if (content !== "") {
      if (block !== "text") start("text", { type: "text", text: "" })
      delta({ type: "text_delta", text: content })
    }
    for (const { function: part, id: call } of calls) {
      if (call !== undefined) start("tool_use", { type: "tool_use", id: call, name: part.name ?? "", input: {} })
      if (part.arguments !== "") delta({ type: "input_json_delta", partial_json: part.arguments })
    }
  }
  const onPiece = ({ text }: Piece) => {
    const read = answer.push(text)
    if (body.stream !== true) return
    open()
    write(read)
  }
  const endStream = (ending: Ending) => {
    if (response.destroyed) return
    open()
    if (ending.reason === "error") {
      event({ type: "error", ...{ error: { type: "internal_error", message: notANumber.message } } })
    } else {
      write(answer.finish(ending.text))
      close()
      event({ type: "message_delta", ...{ delta: stopOf(ending), usage: usage(ending) } })
      event({ type: "message_stop" })
    }
    response.end()
  }
  const endWhole = (ending: Ending) => {
    if (ending.reason === "error") return sendError(response, speech, notANumber)
    answer.finish(ending.text)
    const calls = answer.calls().map(({ function: { arguments: given, name }, id: call }) => ({ type: "tool_use", id: call, name, input: decoded(given) }))
    const content = [
      ...(answer.reasoning() === "" ? [] : [{ type: "thinking", thinking: answer.reasoning(), signature: signature() }]),
      ...(answer.text() === "" ? [] : [{ type: "text", text: answer.text() }]),
      ...calls
    ]
    sendJson(response, 200, { ...message, content, ...stopOf(ending), usage: usage(ending) })
  }
  const ticket = generate(engine, body, plan, onPiece, body.stream === true ? endStream : endWhole)
  response.once("close", ticket.abort)
}
