import type { Ending, Piece, ReportedToken } from "./Generation.ts"
import type { Vocabulary } from "./Vocabulary.ts"

export interface Usage {
  readonly prompt_tokens: number
  readonly total_tokens: number
  readonly completion_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number } | null
}

/** Token counts of one answer; `details` adds the cached count, which is always 0 here: there is no prefix cache. */
export const usageOf = (promptTokens: number, completionTokens: number, details: boolean): Usage => ({
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + completionTokens,
  completion_tokens: completionTokens,
  prompt_tokens_details: details ? { cached_tokens: 0 } : null
})

const atLeastLowest = (logprob: number) => Math.max(logprob, -9999)

const described = (vocabulary: Vocabulary, id: number, logprob: number) => ({
  token: vocabulary.textOf(id),
  logprob: atLeastLowest(logprob),
  bytes: [...vocabulary.bytesOf(id)]
})

const chatLogprobs = (vocabulary: Vocabulary, tokens: ReadonlyArray<ReportedToken>) => ({
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
      const here = at
      at += vocabulary.textOf(id).length
      return here
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
  /** The choice of the chunk that comes before any text; null where there is none. */
  readonly opening: () => object | null
  readonly delta: (piece: Piece, offset: number) => object
  readonly last: (ending: Ending, offset: number) => object
  readonly object: string
  readonly whole: (ending: Ending, text: string, tokens: ReadonlyArray<ReportedToken>) => object
}

const finishOf = (ending: Ending) => ({ finish_reason: ending.reason, stop_reason: ending.stop })

/** `/v1/chat/completions` as vLLM writes it. */
export const chatDialect = (vocabulary: Vocabulary, withLogprobs: boolean, withIds: boolean): Dialect => {
  const logprobs = (tokens: ReadonlyArray<ReportedToken>) => (withLogprobs ? chatLogprobs(vocabulary, tokens) : null)
  const ids = (tokens: ReadonlyArray<ReportedToken>) => (withIds ? { token_ids: tokens.map(({ id }) => id) } : {})
  return {
    chunkObject: "chat.completion.chunk",
    opening: () => ({ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }),
    delta: (piece) => ({ index: 0, delta: { content: piece.text }, logprobs: logprobs(piece.tokens), finish_reason: null, ...ids(piece.tokens) }),
    last: (ending) => ({
      index: 0,
      delta: ending.text === "" ? {} : { content: ending.text },
      logprobs: logprobs(ending.tokens),
      ...finishOf(ending),
      ...ids(ending.tokens)
    }),
    object: "chat.completion",
    whole: (ending, text, tokens) => ({
      index: 0,
      message: { role: "assistant", content: text, refusal: null, tool_calls: [] },
      logprobs: logprobs(tokens),
      ...finishOf(ending),
      ...ids(tokens)
    })
  }
}

/** `/v1/completions` as vLLM writes it; `echo` is the prompt's text where it is to be repeated. */
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
    whole: (ending, text, tokens) => ({ ...choice(`${echo ?? ""}${text}`, tokens, (echo ?? "").length), ...finishOf(ending) })
  }
}
