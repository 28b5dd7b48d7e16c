import { Tokenizer } from "@huggingface/tokenizers"
import { Option, Schema } from "effect"

const AnyObject = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const decodeObject = Schema.decodeUnknownOption(AnyObject)

/** The pinned commit's tokenizer, read by us: what the engine's is held against. */
export class OwnTokenizer {
  private readonly tokenizer: Tokenizer
  /** One more than the highest id that it gives. */
  readonly size: number
  /** Texts of the tokens that are marks and no words. */
  readonly special: ReadonlyArray<string>

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
    this.size = [...tokenizer.get_vocab().values()].reduce((most, id) => Math.max(most, id), -1) + 1
    this.special = [...tokenizer.get_added_tokens_decoder().values()].filter(({ special }) => special).map(({ content }) => content)
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
