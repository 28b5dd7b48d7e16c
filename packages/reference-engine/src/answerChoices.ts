import type { ServerResponse } from "node:http"
import type { Ending, Piece, ReportedToken } from "./AnswerText.ts"
import type { Booted } from "./Boot.ts"
import { ChoicesAnswer } from "./ChoicesAnswer.ts"
import { type Engine, generate, type Plan } from "./Generation.ts"
import type { SamplingBody } from "./Protocol.ts"
import type { ChoicesRequest } from "./Routes.ts"
import type { Ticket } from "./Scheduler.ts"
import type { Speech } from "./Speech.ts"

/**
 * Each sample of one prompt has its own seed. Beyond the safe integers adding 1 would have no effect, so the remainder
 * is incremented.
 */
const bodyOf = (body: SamplingBody, sample: number): SamplingBody =>
  sample === 0 || body.seed == null ? body : { ...body, seed: (body.seed % 2 ** 52) + sample }

/** Starts the generation of one choice and writes it. */
const choose = (engine: Engine, answer: ChoicesAnswer, index: number, plan: Plan): Ticket => {
  const { request, samples } = answer
  const isStream = request.body.stream === true
  const dialect = request.makeDialect(Math.floor(index / samples))
  const tokens: Array<ReportedToken> = []
  let text = ""
  let opened = false
  const chunk = (choice: object, counts: Pick<Piece, "completionTokens" | "reasoningTokens">) =>
    answer.chunk(dialect.chunkObject, { ...choice, index }, plan, counts)
  const open = () => {
    if (opened) return
    opened = true
    answer.open()
    const opening = dialect.opening()
    if (opening !== null) chunk(opening, { completionTokens: 0, reasoningTokens: 0 })
  }
  const onPiece = (piece: Piece) => {
    if (isStream) {
      open()
      const choice = dialect.delta(piece, text.length)
      if (choice !== null) chunk(choice, piece)
    } else {
      tokens.push(...piece.tokens)
    }
    text += piece.text
  }
  const endStream = (ending: Ending) => {
    if (answer.isOver) return
    open()
    answer.endStream(index, ending, dialect.chunkObject, () => chunk(dialect.last(ending, text.length), ending))
  }
  const endWhole = (ending: Ending, promptLogprobs: ReadonlyArray<ReportedToken>) => {
    const complete = () => dialect.complete(ending, text + ending.text, [...tokens, ...ending.tokens])
    answer.endWhole(index, plan, ending, dialect, complete, promptLogprobs)
  }
  return generate(engine, bodyOf(request.body, index % samples), plan, onPiece, isStream ? endStream : endWhole)
}

/**
 * Writes the choices of one request, complete or as a stream, and aborts their generation when the connection of the
 * client closes.
 */
export const answerChoices = (booted: Booted, speech: Speech, request: ChoicesRequest, requestId: string, response: ServerResponse) => {
  const answer = new ChoicesAnswer(booted, speech, request, requestId, response)
  const tickets: Array<Ticket> = []
  const abort = () => {
    for (const ticket of tickets) ticket.abort()
  }
  try {
    for (const plan of request.plans) for (let sample = 0; sample < answer.samples; sample++) tickets.push(choose(booted.engine, answer, tickets.length, plan))
  } catch (cause) {
    abort()
    throw cause
  }
  response.once("close", abort)
}
