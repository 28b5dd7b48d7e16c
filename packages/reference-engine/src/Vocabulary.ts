import { existsSync } from "node:fs"
import { join } from "node:path"
import { Tokenizer } from "@huggingface/tokenizers"
import { optionalNullable } from "@seatrial/domain"
import * as Schema from "effect/Schema"
import { BootFailure } from "./BootFailure.ts"
import { readJsonFile } from "./ModelConfig.ts"
import { withNumericSplits } from "./numericSplits.ts"

const TokenizerFile = Schema.Struct({
  model: Schema.Struct({ type: Schema.optionalKey(Schema.String) }),
  decoder: optionalNullable(Schema.Struct({ type: Schema.String }))
})
const anyObject = Schema.Record(Schema.String, Schema.Unknown)

/** The byte of each character in a byte-level piece (GPT-2's table: printable bytes are themselves). */
const byteOfCharacter = (): ReadonlyMap<string, number> => {
  const table = new Map<string, number>()
  let next = 256
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    table.set(String.fromCodePoint(printable ? byte : next++), byte)
  }
  return table
}

/** The tokenizer of the model: encodes text as token IDs and returns the exact bytes of each ID. */
export class Vocabulary {
  private readonly tokenizer: Tokenizer
  private readonly bytes: ReadonlyArray<Uint8Array>
  private readonly special: ReadonlySet<number>
  private readonly longest: number
  private readonly pieces: ReadonlyArray<string>

  /** Reads `tokenizer.json` and the optional `tokenizer_config.json`. Throws `BootFailure` if one is invalid. */
  constructor(directory: string, size: number) {
    const shape = readJsonFile(directory, "tokenizer.json", TokenizerFile)
    const raw = readJsonFile(directory, "tokenizer.json", anyObject)
    const config = existsSync(join(directory, "tokenizer_config.json")) ? readJsonFile(directory, "tokenizer_config.json", anyObject) : {}
    try {
      this.tokenizer = new Tokenizer({ ...raw, pre_tokenizer: withNumericSplits(raw.pre_tokenizer) }, config)
    } catch (cause) {
      throw new BootFailure(`Failed to load the tokenizer: ${cause instanceof Error ? cause.message : "unknown"}`)
    }
    const added = this.tokenizer.get_added_tokens_decoder()
    const byteLevel = shape.decoder?.type === "ByteLevel"
    const table = byteOfCharacter()
    const encoder = new TextEncoder()
    const bytesOf = (id: number, piece: string): Uint8Array => {
      const addedToken = added.get(id)
      if (addedToken !== undefined) return encoder.encode(addedToken.content)
      if (byteLevel) return Uint8Array.from([...piece].flatMap((character) => table.get(character) ?? [...encoder.encode(character)]))
      const byte = /^<0x([0-9A-F]{2})>$/.exec(piece)?.[1]
      return byte === undefined ? encoder.encode(piece.replaceAll("▁", " ")) : Uint8Array.of(Number.parseInt(byte, 16))
    }
    this.pieces = Array.from({ length: size }, (_, id) => this.tokenizer.id_to_token(id) ?? "")
    this.bytes = this.pieces.map((piece, id) => bytesOf(id, piece))
    this.special = new Set([...added].filter(([, token]) => token.special).map(([id]) => id))
    this.longest = this.bytes.reduce((most, bytes) => Math.max(most, bytes.length), 1)
    // Some models have added tokens without a row in the embedding. The model never generates them, and a prompt that
    // contains one is refused. The tokenizer fills the gap below them with entries without text.
    const texts = [...this.tokenizer.get_vocab()].filter(([piece]) => typeof piece === "string")
    const largest = texts.reduce((most, [, id]) => (added.has(id) ? most : Math.max(most, id)), 0)
    if (largest >= size) throw new BootFailure(`Failed to load the tokenizer: token ${largest} is beyond the ${size} rows of the embedding`)
  }

  get size(): number {
    return this.bytes.length
  }

  encode(text: string, addSpecialTokens: boolean): ReadonlyArray<number> {
    return this.tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids
  }

  /**
   * Whether `text` certainly has more than `limit` tokens. Decided from its length, so that huge bodies are refused
   * without encoding.
   */
  surelyExceeds(text: string, limit: number): boolean {
    return text.length > limit * this.longest
  }

  bytesOf(id: number): Uint8Array {
    return this.bytes[id] ?? new Uint8Array(0)
  }

  pieceOf(id: number): string {
    return this.pieces[id] ?? ""
  }

  isSpecial(id: number): boolean {
    return this.special.has(id)
  }

  /** The ID of a token that has a row in the embedding. */
  idOf(token: string): number | undefined {
    const id = this.tokenizer.token_to_id(token)
    return id === undefined || id >= this.size ? undefined : id
  }

  /** The text of one token. Incomplete characters become U+FFFD. */
  textOf(id: number): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytesOf(id))
  }

  /** The text of many tokens, including special tokens. */
  decode(ids: ReadonlyArray<number>): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(ids.map((id) => this.bytesOf(id))))
  }
}
