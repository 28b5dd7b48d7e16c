import { Effect, Option } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { claims, decodeMessage, decodeResponseText, greedily, post } from "./pathBodies.ts"
import type { Path } from "./pathCalls.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"
import { saltOf, seedOf } from "./saltOf.ts"
import { drawnTexts } from "./texts/drawnTexts.ts"

/** Token limit. The answer may be cut: the check only reads the cache. */
const max = 4

const bodies = {
  "/v1/responses": (question: string, cache_salt: string) => ({ ...greedily, input: question, max_output_tokens: max, store: false, cache_salt }),
  "/v1/messages": (question: string, cache_salt: string) => ({ ...greedily, messages: [{ role: "user", content: question }], max_tokens: max, cache_salt })
} satisfies Record<Path, (question: string, cache_salt: string) => object>

/** Number of prompt tokens that came from the cache, as the path reports it; 0 if it does not. */
const cachedIn = {
  "/v1/responses": (received: string) => Option.getOrNull(decodeResponseText(received))?.usage.input_tokens_details?.cached_tokens ?? 0,
  "/v1/messages": (received: string) => Option.getOrNull(decodeMessage(received))?.usage.cache_read_input_tokens ?? 0
} satisfies Record<Path, (received: string) => number>

/** A request of one organization leaves nothing in the cache that another organization finds. */
const apartOn = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} a prompt that was cached under one salt is not found under another`,
  limitSeconds: seconds(20),
  skipped: (subject) =>
    claims(path)(subject) ?? (!subject.offers.prefixCache ? "prefix cache off" : subject.offers.unsalted?.includes(path) === true ? "it takes no salt" : null),
  run: Effect.fnUntraced(function* (subject: SuiteSubject) {
    const question = (drawnTexts(seedOf(subject.seed, name), 1)[0] ?? "").slice(0, Math.min(160, Math.floor(subject.maxContext / 4)))
    const cached = (salt: string) => Effect.map(post(subject, path, bodies[path](question, saltOf(subject.salt, salt))), cachedIn[path])
    yield* cached("one")
    const other = yield* cached("other")
    if (other > 0) return yield* unexpected(`${other} tokens cached under another salt`)
    const again = yield* cached("one")
    return again > 0 ? `${again} tokens cached, none under another salt` : "cached tokens are not reported"
  })
})

/** Salts on paths other than the chat route. */
export const pathSalt: ReadonlyArray<TrialCheck> = [apartOn("responses_salt", "/v1/responses"), apartOn("messages_salt", "/v1/messages")]
