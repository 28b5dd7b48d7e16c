import type { ServerResponse } from "node:http"
import { chatLogprobs } from "./Answers.ts"
import type { Ending, Piece } from "./AnswerText.ts"
import type { Booted } from "./Boot.ts"
import { type Engine, generate } from "./Generation.ts"
import { ResponseStream } from "./ResponseStream.ts"
import { reading } from "./reading.ts"
import type { ResponseRequest } from "./responses.ts"
import type { Speech } from "./Speech.ts"
import { notANumber, sendError, sendJson } from "./sending.ts"

/** The response before it has any output, with the members that it repeats from the request. */
const emptyResponse = ({ defaults, settings }: Engine, speech: Speech, { body, request }: ResponseRequest, requestId: string) => ({
  id: request.request_id ?? `resp_${requestId}`,
  object: "response",
  created_at: Math.floor(Date.now() / 1000),
  status: "in_progress",
  error: null,
  incomplete_details: null,
  instructions: request.instructions ?? null,
  max_output_tokens: request.max_output_tokens ?? null,
  metadata: null,
  model: speech.reportedName(settings, body.model),
  output: [],
  parallel_tool_calls: request.parallel_tool_calls ?? true,
  previous_response_id: null,
  reasoning: null,
  service_tier: "auto",
  temperature: request.temperature ?? defaults.temperature,
  text: request.text ?? null,
  tool_choice: request.tool_choice ?? "auto",
  tools: request.tools ?? [],
  top_logprobs: request.top_logprobs ?? null,
  top_p: request.top_p ?? defaults.topP,
  truncation: "disabled",
  usage: null
})

const usageOf = ({ settings }: Engine, promptTokens: number, { cachedTokens, completionTokens, reasoningTokens }: Ending) => ({
  input_tokens: promptTokens,
  ...(settings.enablePromptTokensDetails ? { input_tokens_details: { cached_tokens: cachedTokens } } : {}),
  output_tokens: completionTokens,
  output_tokens_details: { reasoning_tokens: reasoningTokens },
  total_tokens: promptTokens + completionTokens
})

/**
 * Writes one response in OpenAI's format, complete or as a stream, and aborts its generation when the connection of the
 * client closes.
 */
export const answerResponse = ({ engine }: Booted, speech: Speech, conversation: ResponseRequest, requestId: string, response: ServerResponse) => {
  const { body, plan } = conversation
  const answer = reading(conversation.makeReaders())
  const started = emptyResponse(engine, speech, conversation, requestId)
  const stream = new ResponseStream(response, {
    isStream: body.stream === true,
    sendsEvent: engine.seams.sendsEvent,
    logprobsOf: (tokens) => (body.logprobs === true ? chatLogprobs(engine.vocabulary, tokens).content : [])
  })
  const ended = (ending: Ending, status: "completed" | "incomplete") => ({
    ...started,
    status,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    output: stream.output(status),
    usage: usageOf(engine, plan.prompt.length, ending)
  })
  const fail = () => {
    if (!stream.isOpen) return sendError(response, speech, notANumber)
    stream.event("response.failed", { response: { ...started, status: "failed", error: { code: "server_error", message: notANumber.message } } })
    response.end()
  }
  const onPiece = (piece: Piece) => {
    stream.open(started)
    stream.write(answer.push(piece.text), piece.tokens)
  }
  const onEnding = (ending: Ending) => {
    if (response.destroyed) return
    if (ending.reason === "error") return fail()
    stream.open(started)
    stream.write(answer.finish(ending.text), ending.tokens)
    const status = ending.reason === "length" ? "incomplete" : "completed"
    stream.finish(status)
    const done = ended(ending, status)
    if (body.stream !== true) return sendJson(response, 200, done)
    stream.event(`response.${status}`, { response: done })
    response.end()
  }
  const ticket = generate(engine, body, plan, onPiece, onEnding)
  response.once("close", ticket.abort)
}
