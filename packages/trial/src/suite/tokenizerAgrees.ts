import { Effect, Option, Schema } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import type { PinnedTokenizer } from "./readPinned.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"
import { seedOf } from "./saltOf.ts"
import { drawnTexts } from "./texts/drawnTexts.ts"
import { tokenizerStrings } from "./texts/tokenizerStrings.ts"
import { vocabularyWords } from "./texts/vocabularyWords.ts"

const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ tokens: Schema.Array(Schema.Int) })))
const decodeText = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Union([Schema.Struct({ prompt: Schema.String }), Schema.Struct({ text: Schema.String })]))
)

/** A text with its ids by the pinned tokenizer, and the text that this tokenizer makes of them. */
interface Encoded {
  readonly number: number
  readonly text: string
  readonly ids: ReadonlyArray<number>
  readonly decoded: string | undefined
}

const post = ({ client, servedName }: SuiteSubject, path: string, body: object) => client.post(path, JSON.stringify({ model: servedName, ...body }))

/** Whether the engine encodes the text to the same ids. */
const encodesAlike = Effect.fnUntraced(function* (subject: SuiteSubject, { ids, number, text }: Encoded) {
  const answer = yield* post(subject, "/tokenize", { prompt: text, add_special_tokens: false })
  const reported = answer.status === 200 ? decodeTokens(answer.text) : Option.none()
  if (Option.isNone(reported)) return yield* unexpected(`text ${number}: HTTP ${answer.status} without tokens`, { status: answer.status })
  const { tokens } = reported.value
  return tokens.length === ids.length && ids.every((id, at) => id === tokens[at])
})

/**
 * Whether the engine decodes the ids to the text. A tokenizer that normalizes returns another text, but always the same
 * one.
 */
const decodesAlike = Effect.fnUntraced(function* (subject: SuiteSubject, { decoded, ids, number, text }: Encoded) {
  const answer = yield* post(subject, "/detokenize", { tokens: ids, skip_special_tokens: false })
  const reported = answer.status === 200 ? decodeText(answer.text) : Option.none()
  if (Option.isNone(reported)) return yield* unexpected(`text ${number}: HTTP ${answer.status} without a text`, { status: answer.status })
  const words = "prompt" in reported.value ? reported.value.prompt : reported.value.text
  return words === text || words === decoded
})

/** The texts that fit the context and for which the pinned tokenizer has ids. */
const encodedTexts = Effect.fnUntraced(function* (subject: SuiteSubject, tokenizer: PinnedTokenizer) {
  const { maxContext, seed } = subject
  const strings = [...tokenizerStrings, (yield* vocabularyWords(subject, "tokenizer_agrees", 24)).join(" "), ...drawnTexts(seedOf(seed, "tokenizer_agrees"), 1)]
  const encoded = yield* tokenizer.encode(strings, false)
  const decoded = yield* tokenizer.decode(encoded)
  const texts = strings.map((text, at): Encoded => ({ number: at + 1, text, ids: encoded[at] ?? [], decoded: decoded[at] }))
  return texts.filter(({ ids }) => ids.length > 0 && ids.length <= maxContext)
})

/** The engine encodes texts to the ids of the pinned tokenizer, and decodes the ids to the same texts. */
export const tokenizerAgrees: TrialCheck = {
  name: "tokenizer_agrees",
  class: "required",
  purpose: "The engine's tokenizer is the pinned one",
  limitSeconds: seconds(10),
  skipped: ({ repository }) => (repository.tokenizer === null ? "no tokenizer.json that Seatrial can read" : null),
  run: Effect.fnUntraced(function* (subject) {
    const { tokenizer } = subject.repository
    if (tokenizer === null) return ""
    const texts = yield* encodedTexts(subject, tokenizer)
    const compared = yield* Effect.forEach(texts, (each) =>
      Effect.map(Effect.all([encodesAlike(subject, each), decodesAlike(subject, each)]), ([hasIds, hasText]) => ({ number: each.number, hasIds, hasText }))
    )
    const first = compared.find(({ hasIds }) => !hasIds) ?? compared.find(({ hasText }) => !hasText)
    if (first === undefined) return `${texts.length} texts`
    const wrong = compared.filter(({ hasIds }) => !hasIds).length
    const back = compared.filter(({ hasText }) => !hasText).length
    return yield* unexpected(`${wrong} of ${texts.length} texts are encoded to other ids, ${back} are decoded to other text (first: text ${first.number})`)
  })
}
