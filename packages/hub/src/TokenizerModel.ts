import { bool, type JsonForm, type JsonValue, number, option, struct, text, usize } from "./JsonForm.ts"
import { JsonNumber } from "./JsonScanner.ts"
import { TokenSet } from "./TokenSet.ts"

/** The type of a member with very many entries. */
export type Entries = "none" | "object" | "list" | "other"
/** One value of an entry; `"nested"` represents an object or a list. */
export type Part = { readonly value: string | boolean | null | JsonNumber } | "nested"

const kinds = ["BPE", "WordPiece", "WordLevel", "Unigram"] as const
type Kind = (typeof kinds)[number]

const fraction: JsonForm = (value) => number(value) ?? (value instanceof JsonNumber && value.value >= 0 && value.value <= 1 ? null : "")

/**
 * The members of each model type except vocabulary and merges, as the tokenizers library reads them (`models/*` +
 * `/serialization.rs`).
 */
const members: Readonly<Record<Kind, JsonForm>> = {
  BPE: struct(
    {},
    {
      dropout: option(fraction),
      unk_token: option(text),
      continuing_subword_prefix: option(text),
      end_of_word_suffix: option(text),
      fuse_unk: option(bool),
      byte_fallback: option(bool),
      ignore_merges: option(bool)
    }
  ),
  WordPiece: struct({ unk_token: text, continuing_subword_prefix: text, max_input_chars_per_word: usize }),
  WordLevel: struct({ unk_token: text }),
  Unigram: struct({}, { unk_id: option(usize), byte_fallback: bool })
}

/** Formats a token for a message. */
const quoted = (token: string) => JSON.stringify(token.length > 40 ? `${token.slice(0, 40)}…` : token)

/** Whether a value is an id: an unsigned 32-bit number without a decimal point or exponent. */
const isId = (part: Part) => part !== "nested" && part.value instanceof JsonNumber && part.value.isInteger && part.value.value < 2 ** 32

/** The two strings of an entry; null if it does not have exactly two. */
const twoTexts = ([left, right, ...more]: ReadonlyArray<Part>): readonly [string, string] | null =>
  left === undefined || left === "nested" || right === undefined || right === "nested" || more.length > 0
    ? null
    : typeof left.value === "string" && typeof right.value === "string"
      ? [left.value, right.value]
      : null

/**
 * Validates the model of a tokenizer while its file is read. It keeps only the first problem of vocabulary and merges,
 * and the hashes of the vocabulary's tokens, because each merge must form one of them from two others.
 */
export class TokenizerModel {
  vocab: Entries = "none"
  merges: Entries = "none"
  readonly #members = new Map<string, JsonValue>()
  #size = 0
  #wrongEntry: string | null = null
  #merges = 0
  /**
   * The first merge that is not a pair of strings, and the first that is not a string with two parts. The library
   * requires all merges to have the same form.
   */
  #noPair: number | null = null
  #noText: number | null = null
  /** The first problem of merges in a valid form. */
  #wrongMerge: string | null = null
  readonly #tokens = new TokenSet()
  /** The tokens required by merges that precede the vocabulary. */
  readonly #awaited = new TokenSet()
  #latePrefix = false

  /** A member except vocabulary and merges. Objects and lists are passed empty. */
  member(name: string, value: JsonValue): void {
    if (name === "continuing_subword_prefix" && this.merges !== "none") this.#latePrefix = true
    this.#members.set(name, value)
  }

  /** An entry of a vocabulary in object form. */
  token(token: string, id: Part): void {
    this.#size++
    if (!isId(id)) this.#wrongEntry ??= quoted(token)
    this.#tokens.add(token)
  }

  /** An entry of a vocabulary in list form with its parts; null if it is not a list. */
  piece(parts: ReadonlyArray<Part> | null): void {
    const [piece, score, ...more] = parts ?? []
    const right = piece !== undefined && piece !== "nested" && typeof piece.value === "string" && score !== undefined && score !== "nested"
    if (!right || !(score.value instanceof JsonNumber) || more.length > 0) this.#wrongEntry ??= `${this.#size}`
    this.#size++
  }

  /** A merge in list form. */
  pair(parts: ReadonlyArray<Part>): void {
    this.#noText ??= this.#merges
    const two = twoTexts(parts)
    if (two === null) this.#noPair ??= this.#merges
    else this.#join(...two)
    this.#merges++
  }

  /** A merge in another form, as in files of older versions. */
  line(line: Part): void {
    this.#noPair ??= this.#merges
    const value = line === "nested" ? null : line.value
    if (typeof value !== "string") this.#noText ??= this.#merges
    else if (!value.startsWith("#version")) {
      // Limited, because a string of spaces would become millions of parts.
      const [left, right, ...more] = value.split(" ", 3)
      if (left === undefined || right === undefined || more.length > 0) this.#noText ??= this.#merges
      else this.#join(left, right)
    }
    this.#merges++
  }

  /** Why the tokenizers library rejects the model, as words that follow "tokenizer.json has"; null if it accepts it. */
  problem(): string | null {
    const type = this.#members.get("type")
    if (type === undefined) return this.#unnamedProblem()
    if (typeof type !== "string") return "a model whose type is not a string"
    const kind = kinds.find((known) => known === type)
    return kind === undefined ? `a model of the unknown type ${type.slice(0, 64)}` : this.#problemOf(kind)
  }

  /** For files of older versions without a model type: the library tries each type. */
  #unnamedProblem(): string | null {
    if (kinds.some((kind) => this.#problemOf(kind) === null)) return null
    const likely =
      this.vocab === "list" ? "Unigram" : this.#members.has("max_input_chars_per_word") ? "WordPiece" : this.#members.has("unk_token") ? "WordLevel" : "BPE"
    return this.#problemOf(this.merges === "none" ? likely : "BPE")
  }

  #problemOf(kind: Kind): string | null {
    const wrong = members[kind](this.#members)
    if (wrong !== null) return `a model of the type ${kind} with an invalid or missing ${wrong.replace(/^\./, "")}`
    return this.#vocabProblem(kind) ?? (kind === "BPE" ? this.#mergesProblem() : kind === "Unigram" ? this.#unknownProblem() : null)
  }

  #vocabProblem(kind: Kind): string | null {
    const wanted = kind === "Unigram" ? "list" : "object"
    if (this.vocab === "none") return "no model.vocab"
    if (this.vocab !== wanted) return `a model.vocab that is not ${wanted === "list" ? "a list" : "an object"}, which the type ${kind} requires`
    if (this.#wrongEntry === null) return null
    return wanted === "list"
      ? `no piece with its score in model.vocab[${this.#wrongEntry}]`
      : `an entry ${this.#wrongEntry} in model.vocab whose value is not a token id`
  }

  #mergesProblem(): string | null {
    if (this.merges === "none") return "no model.merges, which a model of the type BPE needs"
    if (this.merges !== "list") return "a model.merges that is not a list"
    if (this.#noPair !== null && this.#noText !== null)
      return `a model.merges[${Math.max(this.#noPair, this.#noText)}] that is not a pair of tokens, or whose form (text or list) differs from that of earlier entries`
    const prefix = this.#members.get("continuing_subword_prefix") ?? ""
    if (this.#latePrefix && prefix !== "") return null
    if (this.#wrongMerge !== null) return this.#wrongMerge
    return this.#tokens.covers(this.#awaited) ? null : "model.merges that use or produce a token that is not in its vocabulary"
  }

  #unknownProblem(): string | null {
    const id = this.#members.get("unk_id")
    return id instanceof JsonNumber && id.value >= this.#size ? `the model.unk_id ${id.value}, but only ${this.#size} pieces` : null
  }

  #join(left: string, right: string): void {
    if (this.#wrongMerge !== null) return
    this.#needs(left)
    this.#needs(right)
    const prefixMember = this.#members.get("continuing_subword_prefix")
    const prefix = typeof prefixMember === "string" ? Buffer.byteLength(prefixMember) : 0
    if (prefix === 0) this.#needs(left + right)
    else if (Buffer.byteLength(right) < prefix) this.#wrongMerge ??= `model.merges with ${quoted(right)}, which is shorter than its continuing_subword_prefix`
    // The library removes as many bytes as the prefix has, without a comparison.
    else this.#needs(left + Buffer.from(right).subarray(prefix).toString())
  }

  #needs(token: string): void {
    if (this.vocab === "none") this.#awaited.add(token)
    else if (!this.#tokens.has(token)) this.#wrongMerge ??= `model.merges that use or produce ${quoted(token)}, which is not in its vocabulary`
  }
}
