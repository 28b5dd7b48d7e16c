import { randomUUID } from "node:crypto"
import type { ServerResponse } from "node:http"
import { eventFrame } from "@seatrial/domain"
import { chatLogprobs } from "./Answers.ts"
import type { Ending, Piece, ReportedToken } from "./AnswerText.ts"
import type { Booted } from "./Boot.ts"
import { generate } from "./Generation.ts"
import { type AnswerParts, reading } from "./reading.ts"
import type { ResponseRequest } from "./responses.ts"
import type { Speech } from "./Speech.ts"
import { notANumber, openEventStream, sendError, sendJson } from "./sending.ts"

/** A part of the answer: reasoning, text or one call. */
type Item =
  | { readonly type: "reasoning"; readonly id: string; text: string }
  | { readonly type: "message"; readonly id: string; text: string; tokens: Array<ReportedToken> }
  | { readonly type: "function_call"; readonly id: string; readonly call_id: string; readonly name: string; arguments: string }

const thoughtOf = (text: string) => ({ type: "reasoning_text", text })

const short = () => randomUUID().replaceAll("-", "").slice(0, 24)

/**
 * Writes one response in OpenAI's format, complete or as a stream, and aborts its generation when the connection of the
 * client closes.
 */
export const answerResponse = ({ engine }: Booted, speech: Speech, conversation: ResponseRequest, requestId: string, response: ServerResponse) => {
  const { request, body, plan } = conversation
  const answer = reading(conversation.makeReaders())
  const items: Array<Item> = []
  const logprobsOf = (tokens: ReadonlyArray<ReportedToken>) => (body.logprobs === true ? chatLogprobs(engine.vocabulary, tokens).content : [])
  const partOf = (text: string, tokens: ReadonlyArray<ReportedToken>) => ({ type: "output_text", text, annotations: [], logprobs: logprobsOf(tokens) })
  const itemOf = (item: Item, status: "in_progress" | "completed" | "incomplete") => {
    if (item.type === "function_call") return { ...item, status }
    if (item.type === "reasoning") {
      const { id, text, type } = item
      return { id, type, summary: [], ...(status === "in_progress" ? {} : { content: [thoughtOf(text)] }), status }
    }
    const { id, text, tokens, type } = item
    return { id, type, role: "assistant", status, content: status === "in_progress" ? [] : [partOf(text, tokens)] }
  }
  const responseWith = (status: string, more: object = {}) => ({
    id: request.request_id ?? `resp_${requestId}`,
    object: "response",
    created_at: createdAt,
    status,
    error: null,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    metadata: null,
    model: speech.reportedName(engine.settings, body.model),
    output: [],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: null,
    service_tier: "auto",
    temperature: request.temperature ?? engine.defaults.temperature,
    text: request.text ?? null,
    tool_choice: request.tool_choice ?? "auto",
    tools: request.tools ?? [],
    top_logprobs: request.top_logprobs ?? null,
    top_p: request.top_p ?? engine.defaults.topP,
    truncation: "disabled",
    usage: null,
    ...more
  })
  const createdAt = Math.floor(Date.now() / 1000)
  const ended = (ending: Ending) => {
    const cut = ending.reason === "length"
    return responseWith(cut ? "incomplete" : "completed", {
      incomplete_details: cut ? { reason: "max_output_tokens" } : null,
      output: items.map((item, at) => itemOf(item, cut && at === items.length - 1 ? "incomplete" : "completed")),
      usage: {
        input_tokens: plan.prompt.length,
        ...(engine.settings.enablePromptTokensDetails ? { input_tokens_details: { cached_tokens: ending.cachedTokens } } : {}),
        output_tokens: ending.completionTokens,
        output_tokens_details: { reasoning_tokens: ending.reasoningTokens },
        total_tokens: plan.prompt.length + ending.completionTokens
      }
    })
  }

  let opened = false
  let sequence = 0
  const event = (type: string, data: object) => {
    if (body.stream === true && !response.destroyed && engine.seams.sendsEvent?.(type) !== false)
      response.write(eventFrame(type, { sequence_number: sequence++, ...data }))
  }
  const open = () => {
    if (opened || body.stream !== true) return
    opened = true
    openEventStream(response)
    event("response.created", { response: responseWith("in_progress") })
    event("response.in_progress", { response: responseWith("in_progress") })
  }
  const at = (item: Item) => ({ item_id: item.id, output_index: items.indexOf(item) })
  const close = (status: "completed" | "incomplete" = "completed") => {
    const item = items.at(-1)
    if (item === undefined) return
    if (item.type === "reasoning") {
      event("response.reasoning_text.done", { ...at(item), content_index: 0, text: item.text })
      event("response.content_part.done", { ...at(item), content_index: 0, part: thoughtOf(item.text) })
    } else if (item.type === "message") {
      event("response.output_text.done", { ...at(item), content_index: 0, text: item.text, logprobs: logprobsOf(item.tokens) })
      event("response.content_part.done", { ...at(item), content_index: 0, part: partOf(item.text, item.tokens) })
    } else {
      event("response.function_call_arguments.done", { ...at(item), name: item.name, arguments: item.arguments })
    }
    event("response.output_item.done", { output_index: items.indexOf(item), item: itemOf(item, status) })
  }
  const start = (item: Item) => {
    close()
    items.push(item)
    event("response.output_item.added", { output_index: items.length - 1, item: itemOf(item, "in_progress") })
    if (item.type === "message") event("response.content_part.added", { ...at(item), content_index: 0, part: partOf("", []) })
    if (item.type === "reasoning") event("response.content_part.added", { ...at(item), content_index: 0, part: thoughtOf("") })
    return item
  }
  const write = ({ calls, content, reasoning }: AnswerParts, tokens: ReadonlyArray<ReportedToken>) => {
    if (reasoning !== "") {
      const last = items.at(-1)
      const item = last?.type === "reasoning" ? last : start({ type: "reasoning", id: `rs_${short()}`, text: "" })
      if (item.type === "reasoning") item.text += reasoning
      event("response.reasoning_text.delta", { ...at(item), content_index: 0, delta: reasoning })
    }
    if (content !== "") {
      const last = items.at(-1)
      const item = last?.type === "message" ? last : start({ type: "message", id: `msg_${short()}`, text: "", tokens: [] })
      if (item.type === "message") {
        item.text += content
        item.tokens.push(...tokens)
      }
      event("response.output_text.delta", { ...at(item), content_index: 0, delta: content, logprobs: logprobsOf(tokens) })
    }
    for (const { function: part, id: call_id } of calls) {
      const last = items.at(-1)
      const item =
        call_id === undefined && last !== undefined
          ? last
          : start({ type: "function_call", id: `fc_${short()}`, call_id: call_id ?? "", name: part.name ?? "", arguments: "" })
      if (item.type === "function_call" && part.arguments !== "") {
        item.arguments += part.arguments
        event("response.function_call_arguments.delta", { ...at(item), delta: part.arguments })
      }
    }
  }
  const onPiece = (piece: Piece) => {
    open()
    write(answer.push(piece.text), piece.tokens)
  }
  const onEnding = (ending: Ending) => {
    if (response.destroyed) return
    if (ending.reason === "error") {
      if (!opened) return sendError(response, speech, notANumber)
      event("response.failed", { response: responseWith("failed", { error: { code: "server_error", message: notANumber.message } }) })
      return void response.end()
    }
    open()
    write(answer.finish(ending.text), ending.tokens)
    if (items.length === 0) start({ type: "message", id: `msg_${short()}`, text: "", tokens: [] })
    close(ending.reason === "length" ? "incomplete" : "completed")
    if (body.stream !== true) return sendJson(response, 200, ended(ending))
    const done = ended(ending)
    event(`response.${done.status}`, { response: done })
    response.end()
  }
  const ticket = generate(engine, body, plan, onPiece, onEnding)
  response.once("close", ticket.abort)
}
