import type { Ending, Piece, ReportedToken } from "./AnswerText.ts"
import type { AnswerParts, Reading } from "./reading.ts"
import type { Vocabulary } from "./Vocabulary.ts"

export interface Usage {
  readonly prompt_tokens: number
  readonly total_tokens: number
  readonly completion_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number } | null
  readonly completion_tokens_details?: { readonly reasoning_tokens: number }
  readonly reasoning_tokens?: number
}

/** `tokens`: the tokens of the reasoning; null if reasoning is not separated from answers. */
export type CountReasoning = (tokens: number | null) => Pick<Usage, "completion_tokens_details" | "reasoning_tokens">

/** vLLM's form: present whenever reasoning is separated. */
export const nestedReasoning: CountReasoning = (tokens) => (tokens === null ? {} : { completion_tokens_details: { reasoning_tokens: tokens } })

/** SGLang's form: always present. OpenAI's member is added only if there are reasoning tokens. */
export const flatReasoning: CountReasoning = (tokens) => ({
  ...(tokens === null || tokens === 0 ? {} : { completion_tokens_details: { reasoning_tokens: tokens } }),
  reasoning_tokens: tokens ?? 0
})

/** Token counts of one answer. `cachedTokens`: prompt tokens that were found in the cache; null omits the member. */
export const usageOf = (promptTokens: number, completionTokens: number, cachedTokens: number | null, reasoning: ReturnType<CountReasoning>): Usage => ({
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + completionTokens,
  completion_tokens: completionTokens,
  prompt_tokens_details: cachedTokens === null ? null : { cached_tokens: cachedTokens },
  ...reasoning
})

const atLeastLowest = (logprob: number) => Math.max(logprob, -9999)

const described = (vocabulary: Vocabulary, id: number, logprob: number) => ({
  token: vocabulary.textOf(id),
  logprob: atLeastLowest(logprob),
  bytes: [...vocabulary.bytesOf(id)]
})

export const chatLogprobs = (vocabulary: Vocabulary, tokens: ReadonlyArray<ReportedToken>) => ({
  content: tokens.flatMap(({ id, logprobs }) =>
    logprobs === null
      ? []
      : [{ ...described(vocabulary, id, logprobs.chosen), top_logprobs: logprobs.top.map((one) => described(vocabulary, one.id, one.logprob)) }]
  )
})

const textLogprobs = (vocabulary: Vocabulary, tokens: ReadonlyArray<ReportedToken>, offset: number) => {
  let at = offset
  return {
    text_offset: tokens.map(({ id }) => {
      const start = at
      at += vocabulary.textOf(id).length
      return start
    }),
    token_logprobs: tokens.map(({ logprobs }) => (logprobs === null ? null : atLeastLowest(logprobs.chosen))),
    tokens: tokens.map(({ id }) => vocabulary.textOf(id)),
    top_logprobs: tokens.map(({ id, logprobs }) =>
      logprobs === null
        ? null
        : Object.fromEntries([...logprobs.top, { id, logprob: logprobs.chosen }].map((one) => [vocabulary.textOf(one.id), atLeastLowest(one.logprob)]))
    )
  }
}

/** How one endpoint writes its answers. */
export interface Dialect {
  readonly chunkObject: string
  /** The choice of the chunk before any text; null if the endpoint sends none. */
  readonly opening: () => object | null
  /** Returns null if there is nothing to send yet. */
  readonly delta: (piece: Piece, offset: number) => object | null
  readonly last: (ending: Ending, offset: number) => object
  readonly object: string
  readonly complete: (ending: Ending, text: string, tokens: ReadonlyArray<ReportedToken>) => object
}

const finishOf = (ending: Ending) => ({ finish_reason: ending.reason, stop_reason: ending.stop })

/** The form of a chat answer. */
export interface ChatForm {
  readonly withLogprobs: boolean
  readonly withIds: boolean
  /** The member that holds the reasoning; null if reasoning is not separated. */
  readonly reasoningName: "reasoning" | "reasoning_content" | null
}

/** The dialect of `/v1/chat/completions`, as vLLM writes it. */
export const chatDialect = (vocabulary: Vocabulary, { reasoningName, withIds, withLogprobs }: ChatForm, answer: Reading): Dialect => {
  const logprobs = (tokens: ReadonlyArray<ReportedToken>) => (withLogprobs ? chatLogprobs(vocabulary, tokens) : null)
  const ids = (tokens: ReadonlyArray<ReportedToken>) => (withIds ? { token_ids: tokens.map(({ id }) => id) } : {})
  // Tokens whose text is still held back. They are sent with the next text.
  let waiting: ReadonlyArray<ReportedToken> = []
  const finish = (ending: Ending) => {
    const called = answer.called() && ending.reason === "stop" && ending.stop === null
    return { finish_reason: called ? answer.finishOfCalls : ending.reason, stop_reason: ending.stop }
  }
  const delta = ({ calls, content, reasoning }: AnswerParts) => ({
    ...(reasoning === "" || reasoningName === null ? {} : { [reasoningName]: reasoning }),
    ...(content === "" ? {} : { content }),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  })
  return {
    chunkObject: "chat.completion.chunk",
    opening: () => ({ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }),
    delta: (piece) => {
      const parts = answer.push(piece.text)
      const tokens = [...waiting, ...piece.tokens]
      waiting = parts.reasoning === "" && parts.content === "" && parts.calls.length === 0 ? tokens : []
      return waiting.length > 0 ? null : { index: 0, delta: delta(parts), logprobs: logprobs(tokens), finish_reason: null, ...ids(tokens) }
    },
    last: (ending) => {
      const parts = answer.finish(ending.text)
      const tokens = [...waiting, ...ending.tokens]
      return { index: 0, delta: delta(parts), logprobs: logprobs(tokens), ...finish(ending), ...ids(tokens) }
    },
    object: "chat.completion",
    complete: (ending, text, tokens) => {
      answer.finish(text)
      const [calls, content, reasoning] = [answer.calls(), answer.text(), answer.reasoning()]
      return {
        index: 0,
        message: {
          role: "assistant",
          content: content === "" && (calls.length > 0 || reasoning !== "") ? null : content,
          refusal: null,
          ...(reasoningName === null ? {} : { [reasoningName]: reasoning === "" ? null : reasoning }),
          tool_calls: calls
        },
        logprobs: logprobs(tokens),
        ...finish(ending),
        ...ids(tokens)
      }
    }
  }
}

/** The dialect of `/v1/completions`, as vLLM writes it. `echo`: the text of the prompt if the answer repeats it. */
export const textDialect = (vocabulary: Vocabulary, withLogprobs: boolean, withIds: boolean, echo: string | null): Dialect => {
  const logprobs = (tokens: ReadonlyArray<ReportedToken>, offset: number) => (withLogprobs ? textLogprobs(vocabulary, tokens, offset) : null)
  const ids = (tokens: ReadonlyArray<ReportedToken>) => (withIds ? { token_ids: tokens.map(({ id }) => id) } : {})
  const choice = (text: string, tokens: ReadonlyArray<ReportedToken>, offset: number) => ({
    index: 0,
    text,
    logprobs: logprobs(tokens, offset),
    ...ids(tokens)
  })
  return {
    chunkObject: "text_completion",
    opening: () => (echo === null ? null : { index: 0, text: echo, logprobs: null, finish_reason: null, stop_reason: null }),
    delta: (piece, offset) => ({ ...choice(piece.text, piece.tokens, offset), finish_reason: null, stop_reason: null }),
    last: (ending, offset) => ({ ...choice(ending.text, ending.tokens, offset), ...finishOf(ending) }),
    object: "text_completion",
    complete: (ending, text, tokens) => ({ ...choice(`${echo ?? ""}${text}`, tokens, (echo ?? "").length), ...finishOf(ending) })
  }
}
