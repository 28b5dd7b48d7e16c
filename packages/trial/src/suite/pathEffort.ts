import { messageInputTokens } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeCount, decodeMessage, decodeResponseText, greedily, post } from "./pathBodies.ts"
import type { Path } from "./pathCalls.ts"
import { type SuiteSubject, secondsOf } from "./SuiteSubject.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"

/** The size of the prompt that a path built: its tokens, and how many of them came from the cache. */
interface Input {
  readonly tokens: number
  readonly cached: number
}

interface Dialect {
  readonly field: string
  readonly bodyOf: (subject: SuiteSubject, question: string, effort: string) => object
  readonly inputOf: (received: string) => Input | null
}

/** Token limit. The reasoning may be cut: the check only reads the prompt size. */
const max = 16
const dialects: Readonly<Record<Path, Dialect>> = {
  "/v1/responses": {
    field: "reasoning",
    bodyOf: ({ salt }, input, effort) => ({ ...greedily, input, max_output_tokens: max, store: false, cache_salt: salt, reasoning: { effort } }),
    inputOf: (received) =>
      Option.match(decodeResponseText(received), {
        onNone: () => null,
        onSome: ({ usage }) => ({ tokens: usage.input_tokens, cached: usage.input_tokens_details?.cached_tokens ?? 0 })
      })
  },
  "/v1/messages": {
    field: "output_config",
    bodyOf: ({ salt }, content, effort) => ({
      ...greedily,
      messages: [{ role: "user", content }],
      max_tokens: max,
      cache_salt: salt,
      output_config: { effort }
    }),
    inputOf: (received) =>
      Option.match(decodeMessage(received), {
        onNone: () => null,
        onSome: ({ usage }) => ({ tokens: messageInputTokens(usage), cached: usage.cache_read_input_tokens ?? 0 })
      })
  }
}

const countPath = "/v1/messages/count_tokens"

/**
 * Only the chat route reports a prompt. On other paths two prompts differ if their lengths differ, or if the cache
 * shows it: an identical prompt is found in the cache up to its last block, a prompt with only the same beginning is
 * not.
 */
const effortOn = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} each reasoning effort is accepted and changes the prompt`,
  limitSeconds: secondsOf(40, 0),
  skipped: (subject) => {
    const { reasoning_controls, supported_parameters_by_endpoint: fields } = subject.capabilities
    return (
      claims(path)(subject) ?? (reasoning_controls.effort_values.length > 0 && fields[path]?.includes(dialects[path].field) === true ? null : "not claimed")
    )
  },
  run: Effect.fnUntraced(function* (subject) {
    const { bodyOf, field, inputOf } = dialects[path]
    // Not every path separates caches, so the question is new in each run.
    const question = `${subject.salt} ${likelihoodTexts[0]?.text ?? ""}`.slice(0, Math.min(600, Math.floor(subject.maxContext / 4)))
    const ask = (effort: string) => Effect.map(post(subject, path, bodyOf(subject, question, effort)), inputOf)
    const lengths = new Set<number>()
    const efforts = subject.capabilities.reasoning_controls.effort_values
    for (const effort of efforts) {
      const [first, again] = [yield* ask(effort), yield* ask(effort)]
      if (first === null || again === null) return yield* unexpected(`${field}: no token counts with an effort`)
      const isNew = !lengths.has(first.tokens) || first.cached < again.cached
      if (!isNew) return yield* unexpected(`${field}: one of ${efforts.length} efforts does not change the prompt`)
      lengths.add(first.tokens)
      if (path !== "/v1/messages" || claims(countPath)(subject) !== null) continue
      const counting = { messages: [{ role: "user", content: question }], output_config: { effort } }
      const counted = Option.getOrNull(decodeCount(yield* post(subject, countPath, counting)))?.input_tokens
      if (counted !== first.tokens) return yield* unexpected(`count_tokens gives ${counted ?? "no"} tokens for a message of ${first.tokens} with an effort`)
    }
    return `${efforts.length} efforts`
  })
})

/** Efforts on paths other than the chat route. */
export const pathEffort: ReadonlyArray<TrialCheck> = [effortOn("responses_effort", "/v1/responses"), effortOn("messages_effort", "/v1/messages")]
