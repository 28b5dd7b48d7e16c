import type { Check } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { type EngineUnreachable, Unexpected } from "../EngineClient.ts"
import { greedy, type Subject, textPath } from "../Subject.ts"

/** Ordinary sentences, neither famous nor random: an adapter that does anything makes some word of them likelier or less likely. */
const texts: ReadonlyArray<string> = [
  "The harbour was quiet in the morning, and the first boats came home before the market opened.",
  "She counted the boxes twice, wrote the number on the list and closed the door behind her.",
  "A good report says what was done, what was seen and what is still missing, in this order.",
  "The train was late again, so they walked along the river and talked about the long winter.",
  "Mix the flour with water and a little salt, and leave the dough in a warm place for an hour.",
  "Nobody knew who had left the lamp burning, but everybody had seen its light from the hill.",
  "The price is 48 for one and 90 for two; who buys three pays 120 and gets a bag for nothing.",
  "If the wind turns to the north before noon, the small ships stay where they are until evening."
]

const Answer = Schema.fromJsonString(
  Schema.Struct({
    choices: Schema.NonEmptyArray(
      Schema.Struct({
        prompt_logprobs: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Schema.Struct({ logprob: Schema.Finite }))))))
      })
    ),
    prompt_logprobs: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Schema.Struct({ logprob: Schema.Finite }))))))
  })
)
const answerOf = Schema.decodeUnknownOption(Answer)

/** The log-probability of each token of a text but the first, by the model that the subject asks for. */
const scored = Effect.fnUntraced(function* ({ client, servedName }: Subject, text: string) {
  const body = { model: servedName, prompt: text, ...greedy, max_tokens: 1, prompt_logprobs: 0 }
  const { status, text: said } = yield* client.post(textPath, JSON.stringify(body))
  if (status !== 200) return yield* new Unexpected({ detail: `HTTP ${status} for the log-probabilities of a prompt` })
  const answer = answerOf(said)
  const given = Option.getOrUndefined(answer)?.choices[0].prompt_logprobs ?? Option.getOrUndefined(answer)?.prompt_logprobs
  const values = (given ?? []).slice(1).map((token) => Object.values(token ?? {})[0]?.logprob)
  const known = values.filter((value) => value !== undefined)
  if (known.length === 0 || known.length !== values.length) return yield* new Unexpected({ detail: "no log-probabilities of a prompt" })
  return known
})

/** The mean difference between scores of the same tokens, in nats; null where they are not of the same tokens. */
export const meanDifference = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number | null =>
  a.length === 0 || a.length !== b.length ? null : a.reduce((sum, value, at) => sum + Math.abs(value - (b[at] ?? 0)), 0) / a.length

/** Whether an adapter moves what the base says, by more than the base differs from itself: three times that, and more than 0.0005 nats a token. */
export const hasEffect = (ofAdapter: number, ofBase: number): boolean => ofAdapter >= 3 * ofBase && ofAdapter > 0.0005

/** The row `adapter_effect`: an adapter that the engine took and does not apply is found here, also where it is too weak for answers to tell. */
export const adapterEffect = (adapter: Subject, base: Subject): Effect.Effect<Check, EngineUnreachable> =>
  Effect.gen(function* () {
    const score = (subject: Subject) =>
      Effect.map(
        Effect.forEach(texts, (text) => scored(subject, text)),
        (each) => each.flat()
      )
    const first = yield* score(base)
    const second = yield* score(base)
    const adapted = yield* score(adapter)
    const [ofAdapter, ofBase] = [meanDifference(first, adapted), meanDifference(first, second)]
    if (ofAdapter === null || ofBase === null) return yield* new Unexpected({ detail: "adapter and base count the tokens of a text differently" })
    const detail = `${ofAdapter.toFixed(4)} nats a token from the base, which differs from itself by ${ofBase.toFixed(4)}; ${first.length} tokens`
    return { name: "adapter_effect", passed: hasEffect(ofAdapter, ofBase), detail }
  }).pipe(Effect.catchTag("Unexpected", ({ detail }) => Effect.succeed({ name: "adapter_effect", passed: false, detail })))
