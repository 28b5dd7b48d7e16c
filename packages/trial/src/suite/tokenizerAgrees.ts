import { Effect, Option, Schema } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { tokenizerStrings } from "./texts/tokenizerStrings.ts"

const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ tokens: Schema.Array(Schema.Int) })))
const decodeText = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Union([Schema.Struct({ prompt: Schema.String }), Schema.Struct({ text: Schema.String })]))
)

/** The engine encodes texts to the ids of the pinned tokenizer, and decodes the ids to the same texts. */
export const tokenizerAgrees: TrialCheck = {
  name: "tokenizer_agrees",
  class: "required",
  purpose: "The engine's tokenizer is the pinned one",
  limitSeconds: seconds(10),
  skipped: ({ repository }) => (repository.tokenizer === null ? "no tokenizer.json that we read" : null),
  run: Effect.fnUntraced(function* ({ client, maxContext, repository, servedName }) {
    const own = repository.tokenizer
    if (own === null) return ""
    const post = (path: string, body: object) => client.post(path, JSON.stringify({ model: servedName, ...body }))
    let wrong = 0
    let back = 0
    let count = 0
    let first = 0
    const encoded = yield* own.encode(tokenizerStrings, false)
    const decoded = yield* own.decode(encoded)
    for (const [index, text] of tokenizerStrings.entries()) {
      const ids = encoded[index] ?? []
      if (ids.length === 0 || ids.length > maxContext) continue
      const answer = yield* post("/tokenize", { prompt: text, add_special_tokens: false })
      const tokens = answer.status === 200 ? decodeTokens(answer.text) : Option.none()
      if (Option.isNone(tokens)) return yield* unexpected(`text ${index + 1}: HTTP ${answer.status} without tokens`, { status: answer.status })
      count++
      const same = tokens.value.tokens.length === ids.length && ids.every((id, at) => id === tokens.value.tokens[at])
      if (!same && wrong++ === 0) first = index + 1
      const spoken = yield* post("/detokenize", { tokens: ids, skip_special_tokens: false })
      const decodedText = spoken.status === 200 ? decodeText(spoken.text) : Option.none()
      if (Option.isNone(decodedText)) return yield* unexpected(`text ${index + 1}: HTTP ${spoken.status} without a text`, { status: spoken.status })
      const words = "prompt" in decodedText.value ? decodedText.value.prompt : decodedText.value.text
      // A tokenizer that normalizes returns another text, but always the same one.
      if (words !== text && words !== decoded[index] && back++ === 0 && first === 0) first = index + 1
    }
    if (wrong + back > 0) return yield* unexpected(`${wrong} of ${count} texts have other ids, ${back} come back otherwise (first: text ${first})`)
    return `${count} texts`
  })
}
