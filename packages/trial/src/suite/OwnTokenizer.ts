import { Tokenizer } from "@huggingface/tokenizers"
import { Option, Schema } from "effect"

const AnyObject = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const decodeObject = Schema.decodeUnknownOption(AnyObject)

/** The pinned commit's tokenizer, read by us: what the engine's is held against. */
export class OwnTokenizer {
  private readonly tokenizer: Tokenizer
  /** One more than the highest id that it gives. */
  readonly size: number
  /** The same of its vocabulary alone, without the tokens that were added to it. */
  readonly vocabulary: number
  /** The tokens that were added to it. */
  readonly added: ReadonlyArray<{ readonly id: number; readonly content: string }>
  /** Texts of the tokens that are marks and no words. */
  readonly special: ReadonlyArray<string>

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
    const added = [...tokenizer.get_added_tokens_decoder().values()]
    const addedIds = new Set(added.map(({ id }) => id))
    // Ids between the vocabulary and a token that was added far behind it have no text.
    const ids = [...tokenizer.get_vocab()].flatMap(([text, id]) => (typeof text === "string" ? [id] : []))
    const above = (ids: ReadonlyArray<number>) => ids.reduce((most, id) => Math.max(most, id), -1) + 1
    this.size = above(ids)
    this.vocabulary = above(ids.filter((id) => !addedIds.has(id)))
    this.added = added.map(({ content, id }) => ({ id, content }))
    this.special = added.filter(({ special }) => special).map(({ content }) => content)
  }

  encode(text: string, withSpecial: boolean): ReadonlyArray<number> {
    return this.tokenizer.encode(text, { add_special_tokens: withSpecial }).ids
  }

  decode(ids: ReadonlyArray<number>): string {
    return this.tokenizer.decode([...ids], { skip_special_tokens: false, clean_up_tokenization_spaces: false })
  }

  idOf(token: string): number | null {
    return this.tokenizer.token_to_id(token) ?? null
  }
}

/** Null where the repository has no `tokenizer.json`, or one that we do not read. */
export const readTokenizer = (small: ReadonlyMap<string, string>): OwnTokenizer | null => {
  const file = decodeObject(small.get("tokenizer.json"))
  if (Option.isNone(file)) return null
  try {
    return new OwnTokenizer(
      new Tokenizer(
        file.value,
        Option.getOrElse(decodeObject(small.get("tokenizer_config.json") ?? "{}"), () => ({}))
      )
    )
  } catch {
    return null
  }
}
