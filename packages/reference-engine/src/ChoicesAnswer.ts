import type { ServerResponse } from "node:http"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { type Dialect, type Usage, usageOf } from "./Answers.ts"
import type { Ending, Piece, ReportedToken } from "./AnswerText.ts"
import type { Booted } from "./Boot.ts"
import type { Plan } from "./Generation.ts"
import type { ChoicesRequest } from "./Routes.ts"
import type { Sending } from "./Seams.ts"
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

type Counts = Pick<Piece, "cachedTokens" | "completionTokens" | "reasoningTokens">

const unchanged: Sending = (text) => [text]

/** The answer to one request, which its choices share. */
export class ChoicesAnswer {
  readonly request: ChoicesRequest
  readonly samples: number
  private readonly engine: Booted["engine"]
  private readonly speech: Speech
  private readonly response: ServerResponse
  private readonly envelope: object
  private readonly withUsage: boolean
  private readonly continuous: boolean
  private readonly sending: Sending
  private readonly counts: Array<Counts> = []
  private readonly answers: Array<object> = []
  private left: number
  private failed = false

  constructor({ engine }: Booted, speech: Speech, request: ChoicesRequest, requestId: string, response: ServerResponse) {
    const { body, plans, prefix } = request
    this.engine = engine
    this.speech = speech
    this.request = request
    this.response = response
    this.samples = body.n ?? 1
    this.envelope = { id: `${prefix}${requestId}`, created: Math.floor(Date.now() / 1000), model: speech.reportedName(engine.settings, body.model) }
    this.withUsage = body.stream_options?.include_usage === true
    this.continuous = this.withUsage && body.stream_options?.continuous_usage_stats === true
    this.sending = engine.seams.sending?.() ?? unchanged
    this.left = plans.length * this.samples
  }

  /** Whether nothing more can be sent. */
  get isOver(): boolean {
    return this.response.destroyed || this.failed
  }

  open() {
    if (!this.response.headersSent) openEventStream(this.response)
  }

  /** Sends a chunk with one choice. */
  chunk(chunkObject: string, choice: object, plan: Plan, { completionTokens, reasoningTokens }: Pick<Piece, "completionTokens" | "reasoningTokens">) {
    const usage = this.continuous ? { usage: usageOf(plan.prompt.length, completionTokens, null, this.reasoning(reasoningTokens)) } : {}
    this.frame({ ...this.envelope, object: chunkObject, choices: [choice], ...usage })
  }

  /** Ends the stream of a choice; of the last one, the stream. `writeLast`: sends its last chunk. */
  endStream(index: number, ending: Ending, chunkObject: string, writeLast: () => void) {
    this.counts[index] = ending
    this.failed = ending.reason === "error"
    if (this.failed) {
      this.frame(notANumber.body())
    } else {
      writeLast()
      if (--this.left > 0) return
      if (this.withUsage) this.frame({ ...this.envelope, object: chunkObject, choices: [], usage: this.usage() })
    }
    this.frame(streamEnd)
    this.response.end()
  }

  /** Ends a choice; with the last one, sends the answer. `makeChoice`: the complete choice. */
  endWhole(index: number, plan: Plan, ending: Ending, { object }: Dialect, makeChoice: () => object, promptLogprobs: ReadonlyArray<ReportedToken>) {
    if (ending.reason === "error") return sendError(this.response, this.speech, notANumber)
    const { promptIdsInChoice } = this.speech
    this.counts[index] = ending
    this.answers[index] = { ...makeChoice(), index, ...(promptIdsInChoice ? this.promptIds(plan) : {}) }
    if (--this.left > 0) return
    const answered = {
      ...this.envelope,
      object,
      choices: this.answers,
      usage: this.usage(),
      ...(this.request.body.prompt_logprobs != null ? { prompt_logprobs: promptLogprobsOf(this.engine, promptLogprobs) } : {}),
      ...(promptIdsInChoice ? {} : this.promptIds(plan))
    }
    sendText(this.response, 200, this.sending(JSON.stringify(answered), "whole").join(""))
  }

  private frame(data: unknown) {
    if (this.response.destroyed) return
    for (const one of this.sending(typeof data === "string" ? data : JSON.stringify(data), "frame")) this.response.write(dataFrame(one))
  }

  private promptIds({ prompt }: Plan) {
    const { return_prompt_token_ids, return_token_ids } = this.request.body
    return return_token_ids === true || (this.speech.promptIdsInChoice && return_prompt_token_ids === true) ? { prompt_token_ids: prompt } : {}
  }

  /** The counts of reasoning; none if it is not separated. */
  private reasoning(tokens: number) {
    return this.speech.countReasoning(this.request.partsThought ? tokens : null)
  }

  /** Prompt tokens count once per prompt, answer tokens once per choice. */
  private usage(): Usage {
    const sum = (of: (counts: Counts) => number) => this.counts.reduce((total, one) => total + of(one), 0)
    const cached = this.counts.filter((_, index) => index % this.samples === 0).reduce((total, one) => total + one.cachedTokens, 0)
    return usageOf(
      this.request.plans.reduce((total, { prompt }) => total + prompt.length, 0),
      sum(({ completionTokens }) => completionTokens),
      this.engine.settings.enablePromptTokensDetails ? cached : null,
      this.reasoning(sum(({ reasoningTokens }) => reasoningTokens))
    )
  }
}
