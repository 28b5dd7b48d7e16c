import { Tokenizer } from "@huggingface/tokenizers"

/** What is known of a tokenizer without asking it. */
export interface TokenizerFacts {
  /** One more than the highest id that its vocabulary alone gives, without the tokens that were added to it. */
  readonly vocabulary: number
  /** The tokens that were added to it. */
  readonly added: ReadonlyArray<{ readonly id: number; readonly content: string }>
  /** Texts of the tokens that are marks and no words. */
  readonly special: ReadonlyArray<string>
}

/** The pinned commit's tokenizer, read by us: what the engine's is held against. Reading it takes seconds, and what it does to a text is whatever its file says: both belong into a process of their own. */
export class OwnTokenizer {
  private readonly tokenizer: Tokenizer
  readonly facts: TokenizerFacts

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
    const added = [...tokenizer.get_added_tokens_decoder().values()]
    const addedIds = new Set(added.map(({ id }) => id))
    let vocabulary = 0
    // Ids between the vocabulary and a token that was added far behind it have no text.
    for (const [text, id] of tokenizer.get_vocab()) if (typeof text === "string" && !addedIds.has(id)) vocabulary = Math.max(vocabulary, id + 1)
    this.facts = {
      vocabulary,
      added: added.map(({ content, id }) => ({ id, content })),
      special: added.filter(({ special }) => special).map(({ content }) => content)
    }
  }

  encode(text: string, withSpecial: boolean): ReadonlyArray<number> {
    return this.tokenizer.encode(text, { add_special_tokens: withSpecial }).ids
  }

  decode(ids: ReadonlyArray<number>): string {
    // The library refuses what a tokenizer makes of a text for which it has no ids.
    if (ids.length === 0) return ""
    return this.tokenizer.decode([...ids], { skip_special_tokens: false, clean_up_tokenization_spaces: false })
  }

  idOf(token: string): number | null {
    return this.tokenizer.token_to_id(token) ?? null
  }
}

/** The object that a text is in JSON; null where it is none. */
const parseObject = (text: string): object | null => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

/** From the bytes of a `tokenizer.json` and the text of the configuration beside it; null where we cannot read it. */
export const readTokenizer = (file: Uint8Array, config: string): OwnTokenizer | null => {
  const parsed = parseObject(new TextDecoder().decode(file))
  if (parsed === null) return null
  try {
    return new OwnTokenizer(new Tokenizer(parsed, parseObject(config) ?? {}))
  } catch {
    return null
  }
}
