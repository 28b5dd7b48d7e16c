import { Tokenizer } from "@huggingface/tokenizers"
import { withNumericSplits } from "./numericSplits.ts"

/** A token that the tokenizer has in addition to its vocabulary. */
export interface AddedToken {
  readonly id: number
  readonly content: string
}

/** Facts about a tokenizer that need no request. */
export interface TokenizerFacts {
  /** The highest id of the vocabulary plus one, without added tokens. */
  readonly vocabulary: number
  /** The added tokens. */
  readonly added: ReadonlyArray<AddedToken>
  /** Texts of the tokens that are control marks, not words. */
  readonly special: ReadonlyArray<string>
}

/**
 * The tokenizer of the pinned commit, read without the engine to compare the engine's tokenizer with. Reading it takes
 * seconds, and its file determines the work per text, so it must run in a separate process.
 */
export class OwnTokenizer {
  private readonly tokenizer: Tokenizer
  readonly facts: TokenizerFacts

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
    const added = [...tokenizer.get_added_tokens_decoder().values()]
    const addedIds = new Set(added.map(({ id }) => id))
    let vocabulary = 0
    // Ids between the vocabulary and an added token far behind it have no text.
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
    // The library throws if a text has no ids.
    if (ids.length === 0) return ""
    return this.tokenizer.decode([...ids], { skip_special_tokens: false, clean_up_tokenization_spaces: false })
  }

  idOf(token: string): number | null {
    return this.tokenizer.token_to_id(token) ?? null
  }
}

/** Parses a JSON object; null if the text is not one. */
const parseObject = (text: string): object | null => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

/**
 * Reads a tokenizer from the bytes of `tokenizer.json` and the text of its configuration; null if it cannot be read.
 */
export const readTokenizer = (file: Uint8Array, config: string): OwnTokenizer | null => {
  const parsed = parseObject(new TextDecoder().decode(file))
  if (parsed === null) return null
  try {
    return new OwnTokenizer(new Tokenizer(withNumericSplits(parsed), parseObject(config) ?? {}))
  } catch {
    return null
  }
}
