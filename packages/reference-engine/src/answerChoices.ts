import type { ServerResponse } from "node:http"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { type Usage, usageOf } from "./Answers.ts"
import type { Booted } from "./Boot.ts"
import { type Ending, generate, type Piece, type Plan, type ReportedToken } from "./Generation.ts"
import type { SamplingBody } from "./Protocol.ts"
import type { ChoicesRequest } from "./Routes.ts"
import type { Ticket } from "./Scheduler.ts"
import type { Speech } from "./Speech.ts"
import { notANumber, openEventStream, sendError, sendText } from "./sending.ts"

const promptLogprobsOf = (engine: Booted["engine"], tokens: ReadonlyArray<ReportedToken>) => [
  null,
  ...tokens.map(({ id, logprobs }) =>
    Object.fromEntries(
      [...(logprobs?.top ?? []), { id, logprob: logprobs?.chosen ?? 0 }].map((one) => [
        String(one.id),
        { logprob: one.logprob, decoded_token: engine.vocabulary.textOf(one.id) }
      ])
    )
  )
]

/**
 * Each sample of one prompt has its own seed. Beyond the safe integers adding 1 would have no effect, so the remainder
 * is incremented.
 */
const bodyOf = (body: SamplingBody, sample: number): SamplingBody =>
  sample === 0 || body.seed == null ? body : { ...body, seed: (body.seed % 2 ** 52) + sample }

type Counts = Pick<Piece, "cachedTokens" | "completionTokens" | "reasoningTokens">

/**
 * Writes the choices of one request, complete or as a stream, and aborts their generation when the connection of the
 * client closes.
 */
export const answerChoices = ({ engine }: Booted, speech: Speech, asked: ChoicesRequest, requestId: string, response: ServerResponse) => {
  const { body, makeDialect, plans } = asked
  const samples = body.n ?? 1
  const envelope = { id: `${asked.prefix}${requestId}`, created: Math.floor(Date.now() / 1000), model: speech.reportedName(engine.settings, body.model) }
  const withUsage = body.stream_options?.include_usage === true
  const continuous = withUsage && body.stream_options?.continuous_usage_stats === true
  const counts: Array<Counts> = []
  const answers: Array<object> = []
  let left = plans.length * samples
  let failed = false

  const promptIds = ({ prompt }: Plan) =>
    body.return_token_ids === true || (speech.promptIdsInChoice && body.return_prompt_token_ids === true) ? { prompt_token_ids: prompt } : {}
  /** Prompt tokens count once per prompt, answer tokens once per choice. */
  const usage = (): Usage => {
    const sum = (of: (counts: Counts) => number) => counts.reduce((total, one) => total + of(one), 0)
    const cached = counts.filter((_, index) => index % samples === 0).reduce((total, one) => total + one.cachedTokens, 0)
    return usageOf(
      plans.reduce((total, { prompt }) => total + prompt.length, 0),
      sum(({ completionTokens }) => completionTokens),
      engine.settings.enablePromptTokensDetails ? cached : null,
      speech.countReasoning(asked.partsThought ? sum(({ reasoningTokens }) => reasoningTokens) : null)
    )
  }
  const sending = engine.seams.sending?.() ?? ((text: string) => [text])
  const frame = (data: unknown) => {
    if (response.destroyed) return
    for (const one of sending(typeof data === "string" ? data : JSON.stringify(data), "frame")) response.write(dataFrame(one))
  }

  const choose = (index: number, plan: Plan): Ticket => {
    const prompt = Math.floor(index / samples)
    const dialect = makeDialect(prompt)
    const tokens: Array<ReportedToken> = []
    let text = ""
    let opened = false
    const chunk = (choice: object, { completionTokens, reasoningTokens }: Pick<Piece, "completionTokens" | "reasoningTokens">) =>
      frame({
        ...envelope,
        object: dialect.chunkObject,
        choices: [{ ...choice, index }],
        ...(continuous
          ? { usage: usageOf(plan.prompt.length, completionTokens, null, speech.countReasoning(asked.partsThought ? reasoningTokens : null)) }
          : {})
      })
    const open = () => {
      if (opened) return
      opened = true
      if (!response.headersSent) openEventStream(response)
      const opening = dialect.opening()
      if (opening !== null) chunk(opening, { completionTokens: 0, reasoningTokens: 0 })
    }
    const onPiece = (piece: Piece) => {
      if (body.stream === true) {
        open()
        const choice = dialect.delta(piece, text.length)
        if (choice !== null) chunk(choice, piece)
      } else {
        tokens.push(...piece.tokens)
      }
      text += piece.text
    }
    const endStream = (ending: Ending) => {
      if (response.destroyed || failed) return
      open()
      counts[index] = ending
      failed = ending.reason === "error"
      if (failed) {
        frame(notANumber.body())
      } else {
        chunk(dialect.last(ending, text.length), ending)
        if (--left > 0) return
        if (withUsage) frame({ ...envelope, object: dialect.chunkObject, choices: [], usage: usage() })
      }
      frame(streamEnd)
      response.end()
    }
    const endWhole = (ending: Ending, promptLogprobs: ReadonlyArray<ReportedToken>) => {
      if (ending.reason === "error") return sendError(response, speech, notANumber)
      tokens.push(...ending.tokens)
      counts[index] = ending
      answers[index] = { ...dialect.complete(ending, text + ending.text, tokens), index, ...(speech.promptIdsInChoice ? promptIds(plan) : {}) }
      if (--left > 0) return
      const answered = {
        ...envelope,
        object: dialect.object,
        choices: answers,
        usage: usage(),
        ...(body.prompt_logprobs != null ? { prompt_logprobs: promptLogprobsOf(engine, promptLogprobs) } : {}),
        ...(speech.promptIdsInChoice ? {} : promptIds(plan))
      }
      sendText(response, 200, sending(JSON.stringify(answered), "whole").join(""))
    }
    return generate(engine, bodyOf(body, index % samples), plan, onPiece, body.stream === true ? endStream : endWhole)
  }

  const tickets: Array<Ticket> = []
  const abort = () => {
    for (const ticket of tickets) ticket.abort()
  }
  try {
    for (const plan of plans) for (let sample = 0; sample < samples; sample++) tickets.push(choose(tickets.length, plan))
  } catch (cause) {
    abort()
    throw cause
  }
  response.once("close", abort)
}
