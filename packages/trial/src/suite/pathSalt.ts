import { Effect, Option } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeMessage, decodeResponseText, greedily, post } from "./pathBodies.ts"
import type { Path } from "./pathCalls.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"

/** A thought may be cut: only the cache is looked at. */
const max = 4

const bodyOf = (path: Path, question: string, cache_salt: string): object =>
  path === "/v1/responses"
    ? { ...greedily, input: question, max_output_tokens: max, store: false, cache_salt }
    : { ...greedily, messages: [{ role: "user", content: question }], max_tokens: max, cache_salt }

/** Tokens of a prompt that were found in the cache, as its path tells them; 0 where it does not. */
const cachedIn = (path: Path, told: string): number =>
  path === "/v1/responses"
    ? (Option.getOrNull(decodeResponseText(told))?.usage.input_tokens_details?.cached_tokens ?? 0)
    : (Option.getOrNull(decodeMessage(told))?.usage.cache_read_input_tokens ?? 0)

/** What one organization asks on a path leaves nothing in the cache that another finds. */
const apartOn = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  heldToSeen: true,
  purpose: `On ${path} nothing that was asked under one salt is found in the prefix cache under another`,
  limitSeconds: seconds(20),
  skipped: (subject) =>
    claims(path)(subject) ?? (!subject.offers.prefixCache ? "prefix cache off" : subject.offers.unsalted?.includes(path) === true ? "it takes no salt" : null),
  run: Effect.fnUntraced(function* (subject: SuiteSubject) {
    const question = (likelihoodTexts[1]?.text ?? "").slice(0, Math.min(160, Math.floor(subject.maxContext / 4)))
    const cached = (salt: string) => Effect.map(post(subject, path, bodyOf(path, question, `${subject.salt}-${salt}`)), (told) => cachedIn(path, told))
    yield* cached("one")
    const other = yield* cached("other")
    if (other > 0) return yield* unexpected(`${other} tokens cached under another salt`)
    const again = yield* cached("one")
    return again > 0 ? `${again} tokens cached, none under another salt` : "what is cached is not told"
  })
})

/** Salts beside the chat route. */
export const pathSalt: ReadonlyArray<TrialCheck> = [apartOn("responses_salt", "/v1/responses"), apartOn("messages_salt", "/v1/messages")]
