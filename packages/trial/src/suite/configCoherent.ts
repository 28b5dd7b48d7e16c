import { optionalNullable } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { configuredEnds } from "./endIds.ts"
import type { AddedToken } from "./OwnTokenizer.ts"
import type { PinnedRepository } from "./SuiteSubject.ts"

const Token = optionalNullable(Schema.Union([Schema.String, Schema.Struct({ content: Schema.String })]))
const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ eos_token: Token })))

/** Layers of the heads that predict further tokens may follow: engines read as many types as there are layers. */
const layerTypesFault = (own: ReturnType<typeof configuredEnds>["own"]): string | null => {
  if (own?.layer_types == null || own.num_hidden_layers == null || own.layer_types.length >= own.num_hidden_layers) return null
  return `${own.layer_types.length} types for ${own.num_hidden_layers} layers`
}

/** The end token that the tokenizer's settings name. */
const tokenizerEnd = (small: ReadonlyMap<string, string>): string | undefined => {
  const { eos_token } = Option.getOrElse(decodeTokens(small.get("tokenizer_config.json")), () => ({ eos_token: null }))
  return typeof eos_token === "string" ? eos_token : eos_token?.content
}

const idOf = Effect.fnUntraced(function* (tokenizer: PinnedRepository["tokenizer"], token: string | undefined) {
  return token === undefined || tokenizer === null ? null : ((yield* tokenizer.find([token]))[0] ?? null)
})

/** The highest id that the tokenizer gives, apart from added tokens, has an embedding row. */
const idsFit = Effect.fnUntraced(function* (tokenizer: PinnedRepository["tokenizer"], rows: number) {
  if (tokenizer === null) return
  const highest = Math.max(tokenizer.vocabulary - 1, ...(yield* tokenizer.encode(["a"], true)).flat())
  if (highest >= rows) return yield* unexpected(`the tokenizer gives ids up to ${highest}, the embedding has ${rows} rows`)
})

/** The ids that end an answer, from all files. Each has an embedding row. */
const knownEnds = Effect.fnUntraced(function* ({ config: { vocab_size: rows }, small, tokenizer }: PinnedRepository) {
  const { configured, generation, own } = configuredEnds(small)
  const layerFault = layerTypesFault(own)
  if (layerFault !== null) return yield* unexpected(layerFault)
  const outside = [...configured, ...generation].find((id) => id < 0 || id >= rows)
  if (outside !== undefined) return yield* unexpected(`end-of-turn id ${outside} in a vocabulary of ${rows}`)
  const text = tokenizerEnd(small)
  const tokenId = yield* idOf(tokenizer, text)
  if (tokenId !== null && tokenId >= rows) return yield* unexpected(`end-of-turn id ${tokenId} in a vocabulary of ${rows}`)
  const ids = new Set([...configured, ...generation, ...(tokenId === null ? [] : [tokenId])])
  if (ids.size === 0 && tokenizer !== null) return yield* unexpected("no end-of-turn token is named anywhere")
  // The library adds this token beyond the trained vocabulary. It ends nothing, as long as another token does.
  return { ids, isTokenizerEndUnknown: text !== undefined && text !== "" && tokenizer !== null && tokenId === null }
})

const turn = { role: "user", content: "a" }
const conversation = { messages: [turn, { role: "assistant", content: "qqq" }, turn] }

/**
 * The id of the mark that the template writes after an answer; null if it writes none. The template of a base model may
 * write a mark that the model was never trained on, so the check only reports it. Fails if the template writes an added
 * token without an embedding row.
 */
const templateEnd = Effect.fnUntraced(function* ({ config, template, tokenizer }: PinnedRepository, beyond: ReadonlyArray<AddedToken>) {
  const rendered = (template === null ? null : (yield* template.render([conversation]))[0]) ?? ""
  const written = beyond.find(({ content }) => rendered.includes(content))
  if (written !== undefined) return yield* unexpected(`the template writes id ${written.id}, the embedding has ${config.vocab_size} rows`)
  const after = rendered.split("qqq")[1] ?? ""
  return yield* idOf(
    tokenizer,
    tokenizer?.special.find((special) => after.startsWith(special))
  )
})

const templateEndNote = (ids: ReadonlySet<number>, ending: number | null): string => {
  if (ending === null) return ""
  return ids.has(ending) ? ", the template's among them" : `, not the template's ${ending}`
}

/** Configuration, generation settings, tokenizer and template describe the same model. */
export const configCoherent: TrialCheck = {
  name: "config_coherent",
  class: "required",
  purpose: "Configuration, generation settings, tokenizer and template agree on vocabulary, layers and end-of-turn tokens",
  limitSeconds: seconds(5),
  run: Effect.fnUntraced(function* ({ repository }) {
    const { config, tokenizer } = repository
    yield* idsFit(tokenizer, config.vocab_size)
    const { ids, isTokenizerEndUnknown } = yield* knownEnds(repository)
    // An added token without an embedding row is harmless if no text contains it.
    const beyond = tokenizer?.added.filter(({ id }) => id >= config.vocab_size) ?? []
    const ending = yield* templateEnd(repository, beyond)
    const notes = [
      templateEndNote(ids, ending),
      isTokenizerEndUnknown ? "; the tokenizer's end-of-turn token is not in its own vocabulary" : "",
      beyond.length === 0 ? "" : `, ${beyond.length} added tokens beyond the embedding`
    ]
    return `${ids.size} end ids${notes.join("")}`
  })
}
