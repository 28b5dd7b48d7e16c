import { CompletionUsage, optionalNullable, reasoningOf } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import type { EngineClient } from "../EngineClient.ts"
import { type Answer, type Call, type EngineUnreachable, Unexpected } from "../engineAnswers.ts"

const Ids = Schema.Array(Schema.Int)

const ToolCall = Schema.Struct({ id: optionalNullable(Schema.String), function: Schema.Struct({ name: Schema.String, arguments: Schema.String }) })

const MessageToken = Schema.Struct({
  token: Schema.String,
  top_logprobs: optionalNullable(Schema.Array(Schema.Struct({ token: Schema.String, logprob: optionalNullable(Schema.Finite) })))
})
const Logprobs = Schema.Struct({
  tokens: optionalNullable(Schema.Array(Schema.String)),
  token_logprobs: optionalNullable(Schema.Array(Schema.NullOr(Schema.Finite))),
  top_logprobs: optionalNullable(Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Schema.NullOr(Schema.Finite))))),
  content: optionalNullable(Schema.Array(MessageToken))
})
/** By token id: the prompt token, and alternatives if requested. */
const PromptLogprobs = Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Schema.Struct({ logprob: Schema.Finite }))))
const Choice = Schema.Struct({
  text: optionalNullable(Schema.String),
  message: optionalNullable(
    Schema.Struct({
      content: optionalNullable(Schema.String),
      reasoning: optionalNullable(Schema.String),
      reasoning_content: optionalNullable(Schema.String),
      tool_calls: optionalNullable(Schema.Array(ToolCall))
    })
  ),
  finish_reason: optionalNullable(Schema.String),
  token_ids: optionalNullable(Ids),
  response_token_ids: optionalNullable(Ids),
  prompt_token_ids: optionalNullable(Ids),
  logprobs: optionalNullable(Logprobs),
  prompt_logprobs: optionalNullable(PromptLogprobs)
})
const Whole = Schema.Struct({
  choices: Schema.NonEmptyArray(Choice),
  usage: CompletionUsage,
  prompt_token_ids: optionalNullable(Ids),
  prompt_logprobs: optionalNullable(PromptLogprobs)
})
const decodeWhole = Schema.decodeUnknownOption(Schema.fromJsonString(Whole))

/** Everything that an answer reports, in the format of any engine. A value that the engine does not report is null. */
export interface Reading extends Answer {
  readonly ids: ReadonlyArray<number> | null
  readonly promptIds: ReadonlyArray<number> | null
  /** Of the chosen tokens. */
  readonly logprobs: ReadonlyArray<number> | null
  /** The log-probabilities of the likeliest tokens at each place. */
  readonly tops: ReadonlyArray<ReadonlyArray<number>> | null
  /**
   * For a continuation: the first token and the log-probabilities of the likeliest tokens there; null if the engine
   * names no tokens.
   */
  readonly first: { readonly token: string; readonly top: ReadonlyMap<string, number> } | null
  /** The chosen token and the likeliest tokens at each place. */
  readonly tokenChoices: ReadonlyArray<{ readonly token: string; readonly top: ReadonlyArray<string> }> | null
  /** The log-probabilities of the likeliest tokens at each place of a message, in their order in the answer. */
  readonly ordered: ReadonlyArray<ReadonlyArray<number>>
  /** Of the prompt tokens from the second on. */
  readonly promptLogprobs: ReadonlyArray<number> | null
  readonly cached: number | null
  readonly reasoningTokens: number | null
  readonly toolCalls: ReadonlyArray<Call>
}

type Answered = typeof Whole.Type

const numbers = (values: ReadonlyArray<number | null>): ReadonlyArray<number> => values.flatMap((value) => (value === null ? [] : [value]))

/**
 * Selects by id if ids are present, otherwise the only value of each place. For an echoed prompt, the beginning of all
 * log-probabilities.
 */
const promptLogprobsOf = (answer: Answered, ids: ReadonlyArray<number> | null): ReadonlyArray<number> | null => {
  const [choice] = answer.choices
  const places = answer.prompt_logprobs ?? choice.prompt_logprobs
  if (places != null) {
    return places.slice(1).map((place, index) => {
      const values = Object.values(place ?? {})
      return (place?.[String(ids?.[index + 1])] ?? values[0])?.logprob ?? Number.NaN
    })
  }
  const echoed = choice.logprobs?.token_logprobs
  const { completion_tokens, prompt_tokens } = answer.usage
  return echoed != null && echoed.length === prompt_tokens + completion_tokens ? numbers(echoed.slice(1, prompt_tokens)) : null
}

const firstOf = (logprobs: (typeof Choice.Type)["logprobs"]): Reading["first"] => {
  const [token] = logprobs?.tokens ?? []
  if (token === undefined) return null
  return { token, top: new Map(Object.entries(logprobs?.top_logprobs?.[0] ?? {}).flatMap(([name, value]) => (value === null ? [] : [[name, value]]))) }
}

/** The tokens of an answer and their alternatives, in the format of completions or of messages. */
const tokensOf = (logprobs: (typeof Choice.Type)["logprobs"]): Pick<Reading, "first" | "logprobs" | "ordered" | "tokenChoices" | "tops"> => {
  if (logprobs == null) return { logprobs: null, tops: null, first: null, tokenChoices: null, ordered: [] }
  const { content, token_logprobs, tokens, top_logprobs } = logprobs
  return {
    logprobs: token_logprobs == null ? null : numbers(token_logprobs),
    tops: top_logprobs?.map((place) => numbers(Object.values(place ?? {}))) ?? null,
    first: firstOf(logprobs),
    tokenChoices:
      content?.map(({ token, top_logprobs: top }) => ({ token, top: top?.map((each) => each.token) ?? [] })) ??
      tokens?.map((token, at) => ({ token, top: Object.keys(top_logprobs?.[at] ?? {}) })) ??
      null,
    ordered: content?.map(({ top_logprobs: top }) => numbers(top?.map(({ logprob }) => logprob ?? null) ?? [])) ?? []
  }
}

/** The text, the reasoning and the calls of a message or a completion. */
const saidIn = ({ message, text }: typeof Choice.Type): Pick<Reading, "content" | "reasoning" | "toolCalls"> => ({
  content: message?.content ?? text ?? "",
  reasoning: reasoningOf(message),
  toolCalls: message?.tool_calls ?? []
})

/** The counts of an answer in addition to the usual ones. */
const countsOf = ({ completion_tokens_details, prompt_tokens_details, reasoning_tokens }: Answered["usage"]): Pick<Reading, "cached" | "reasoningTokens"> => ({
  cached: prompt_tokens_details?.cached_tokens ?? null,
  reasoningTokens: completion_tokens_details?.reasoning_tokens ?? reasoning_tokens ?? null
})

const readingOf = (answer: Answered, sentIds: ReadonlyArray<number> | null): Reading => {
  const [choice] = answer.choices
  const promptIds = answer.prompt_token_ids ?? choice.prompt_token_ids ?? null
  const { completion_tokens, prompt_tokens, total_tokens } = answer.usage
  return {
    ...saidIn(choice),
    finishReason: choice.finish_reason ?? null,
    usage: { prompt_tokens, completion_tokens, total_tokens },
    ids: choice.token_ids ?? choice.response_token_ids ?? null,
    promptIds,
    ...tokensOf(choice.logprobs),
    promptLogprobs: promptLogprobsOf(answer, promptIds ?? sentIds),
    ...countsOf(answer.usage)
  }
}

const decodeSentIds = Schema.decodeUnknownOption(Schema.Struct({ prompt: Ids }))

/**
 * Sends a request and reads the whole answer. Fails with `Unexpected` for another status than 200 and for an answer
 * that cannot be decoded.
 */
export const readAnswer = Effect.fnUntraced(function* (
  client: EngineClient,
  path: string,
  body: object
): Effect.fn.Return<Reading, EngineUnreachable | Unexpected> {
  const { status, text } = yield* client.post(path, JSON.stringify(body))
  if (status !== 200) return yield* new Unexpected({ detail: `HTTP ${status} for a good request`, status })
  const decoded = decodeWhole(text)
  if (Option.isNone(decoded)) return yield* new Unexpected({ detail: "an answer without choices and usage" })
  return readingOf(decoded.value, Option.getOrNull(decodeSentIds(body))?.prompt ?? null)
})
