import type { Ending, Piece, ReportedToken } from "./Generation.ts"
import type { Read, ToolCallDelta, ToolCallReader } from "./ToolCallReader.ts"
import type { Vocabulary } from "./Vocabulary.ts"

export interface Usage {
  readonly prompt_tokens: number
  readonly total_tokens: number
  readonly completion_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number } | null
}

/** Token counts of one answer; `cachedTokens` are those of the prompt that were known, null where they are not to be told. */
export const usageOf = (promptTokens: number, completionTokens: number, cachedTokens: number | null): Usage => ({
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + completionTokens,
  completion_tokens: completionTokens,
  prompt_tokens_details: cachedTokens === null ? null : { cached_tokens: cachedTokens }
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
  /** Null where there is nothing to be sent yet. */
  readonly delta: (piece: Piece, offset: number) => object | null
  readonly last: (ending: Ending, offset: number) => object
  readonly object: string
  readonly whole: (ending: Ending, text: string, tokens: ReadonlyArray<ReportedToken>) => object
}

const finishOf = (ending: Ending) => ({ finish_reason: ending.reason, stop_reason: ending.stop })

/** How calls are read out of an answer, and what ends one that has some. */
export interface Calls {
  readonly reader: ToolCallReader
  readonly finish: "stop" | "tool_calls"
}

/** The parts of calls joined, each call whole. */
export const joined = (deltas: ReadonlyArray<ToolCallDelta>) => {
  const calls = new Map<number, { id: string; type: "function"; function: { name: string; arguments: string } }>()
  for (const { function: part, id = "", index } of deltas) {
    const call = calls.get(index) ?? { id, type: "function", function: { name: part.name ?? "", arguments: "" } }
    call.function.arguments += part.arguments
    calls.set(index, call)
  }
  return [...calls.values()]
}

/** `/v1/chat/completions` as vLLM writes it; `calls` is null where the answer is text alone. */
export const chatDialect = (vocabulary: Vocabulary, withLogprobs: boolean, withIds: boolean, calls: Calls | null): Dialect => {
  const logprobs = (tokens: ReadonlyArray<ReportedToken>) => (withLogprobs ? chatLogprobs(vocabulary, tokens) : null)
  const ids = (tokens: ReadonlyArray<ReportedToken>) => (withIds ? { token_ids: tokens.map(({ id }) => id) } : {})
  // Tokens whose text is held back go with the next part that is sent.
  let waiting: ReadonlyArray<ReportedToken> = []
  const finish = (ending: Ending) => {
    const called = calls !== null && calls.reader.count > 0 && ending.reason === "stop" && ending.stop === null
    return { finish_reason: called ? calls.finish : ending.reason, stop_reason: ending.stop }
  }
  const read = (text: string, last: boolean): Read => {
    if (calls === null) return { content: text, calls: [] }
    const pushed = calls.reader.push(text)
    if (!last) return pushed
    const rest = calls.reader.finish()
    return { content: pushed.content + rest.content, calls: [...pushed.calls, ...rest.calls] }
  }
  const delta = (found: Read) => ({
    ...(found.content === "" ? {} : { content: found.content }),
    ...(found.calls.length === 0 ? {} : { tool_calls: found.calls })
  })
  return {
    chunkObject: "chat.completion.chunk",
    opening: () => ({ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }),
    delta: (piece) => {
      const found = read(piece.text, false)
      const tokens = [...waiting, ...piece.tokens]
      waiting = found.content === "" && found.calls.length === 0 ? tokens : []
      return waiting.length > 0 ? null : { index: 0, delta: delta(found), logprobs: logprobs(tokens), finish_reason: null, ...ids(tokens) }
    },
    last: (ending) => {
      const found = read(ending.text, true)
      const tokens = [...waiting, ...ending.tokens]
      return { index: 0, delta: delta(found), logprobs: logprobs(tokens), ...finish(ending), ...ids(tokens) }
    },
    object: "chat.completion",
    whole: (ending, text, tokens) => {
      const found = read(text, true)
      const content = found.content === "" && found.calls.length > 0 ? null : found.content
      return {
        index: 0,
        message: { role: "assistant", content, refusal: null, tool_calls: joined(found.calls) },
        logprobs: logprobs(tokens),
        ...finish(ending),
        ...ids(tokens)
      }
    }
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
