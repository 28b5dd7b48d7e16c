import { JsonKeeper } from "./JsonKeeper.ts"
import { JsonNumber, JsonScanner, type JsonVisitor } from "./JsonScanner.ts"
import type { Sink } from "./safetensors.ts"
import { type Part, TokenizerModel } from "./TokenizerModel.ts"
import { addedToken, isSmallPart, problemOfPart } from "./tokenizerSteps.ts"

/** The facts of a `tokenizer.json` that may contradict its model or itself. */
export interface TokenizerFacts {
  /**
   * The highest id of the vocabulary without added tokens, which in real models may have no row; -1 if there is none.
   */
  readonly highest: number
  /**
   * Why the tokenizers library cannot read it, as words that follow "has", such as `the pre_tokenizer Odd`; or null.
   */
  readonly problem: string | null
  /** Whether it lists the tokens added to its vocabulary, even if the list is empty. */
  readonly listsAdded: boolean
}
/** Ids above this, beyond any real vocabulary, are not recorded individually; only the highest counts. */
const mostIds = 1 << 24
/** Flags of an id: used by the vocabulary, and used by added tokens. */
const ofVocabulary = 1
const ofAdded = 2

/** The ids in use, with their flags. */
class Ids {
  #marks = new Uint8Array(1 << 16)
  #highest = -1
  #beyond = -1

  mark(id: number, as: number): void {
    if (!Number.isInteger(id) || id < 0) return
    if (id >= mostIds) {
      if (as === ofVocabulary) this.#beyond = Math.max(this.#beyond, id)
      return
    }
    if (id >= this.#marks.length) {
      const longer = new Uint8Array(Math.min(mostIds, Math.max(id + 1, this.#marks.length * 2)))
      longer.set(this.#marks)
      this.#marks = longer
    }
    this.#marks[id] = (this.#marks[id] ?? 0) | as
    if (as === ofVocabulary) this.#highest = Math.max(this.#highest, id)
  }

  /** The highest id of the vocabulary that is not an added token; -1 if there is none. */
  highest(): number {
    let highest = this.#highest
    while (highest >= 0 && this.#marks[highest] !== ofVocabulary) highest--
    return Math.max(highest, this.#beyond)
  }
}

/** More parts than any valid entry has. Further parts of a hostile entry are dropped. */
const mostParts = 3

type Value = string | boolean | null | JsonNumber
type Kind = "object" | "list"

/** Collects the facts of a tokenizer. It keeps only a flag per id, a hash per token, and the small parts. */
class TokenizerVisitor implements JsonVisitor {
  readonly #ids = new Ids()
  readonly #model = new TokenizerModel()
  readonly #keeper = new JsonKeeper()
  #problem: string | null = null
  #isObject = false
  #hasModel = false
  #listsAdded = false
  #entries = 0
  #addedAt = 0
  /** The current path: names in the outermost object, within that, and in an entry of the vocabulary. */
  #first = ""
  #second = ""
  #third = ""
  /** The parts of an open entry in list form. */
  #parts: Array<Part> | null = null

  /** The facts of the whole file; null if it is not a tokenizer. */
  facts(): TokenizerFacts | null {
    if (!this.#isObject || !this.#hasModel) return null
    return { highest: this.#ids.highest(), problem: this.#model.problem() ?? this.#problem, listsAdded: this.#listsAdded }
  }

  ignores(depth: number): boolean {
    return this.#first === "model" && (depth > 4 || (depth >= 3 && !this.#isEntry()))
  }

  begin(kind: Kind, depth: number): void {
    if (depth === 0) this.#isObject = kind === "object"
    else if (this.#first === "model") this.#beginModel(kind, depth)
    else if (this.#isKept(depth)) this.#keeper.begin(kind)
    else if (depth === 1 && this.#first === "added_tokens") this.#listAdded(kind === "list")
  }

  end(depth: number): void {
    if (this.#first === "model" && depth === 3 && this.#isEntry()) this.#endEntry()
    else if (this.#isKept(depth)) {
      this.#keeper.end()
      this.#endSmall(depth)
    }
  }

  name(name: string, depth: number): void {
    if (depth === 1) this.#nameMember(name)
    else if (depth === 2) this.#second = name
    else if (depth === 3) this.#third = name
    if (this.#isKept(depth - 1)) this.#keeper.name(name)
  }

  value(value: Value, depth: number): void {
    if (this.#first === "model") this.#modelValue(value, depth)
    else if (depth === 1 && this.#first === "added_tokens") this.#listAdded(false)
    else if (this.#isKept(depth)) this.#keptValue(value, depth)
  }

  #nameMember(name: string): void {
    this.#first = name
    if (name !== "model" && name !== "added_tokens" && !isSmallPart(name)) this.#problem ??= `an unknown member ${name.slice(0, 64)}`
  }

  #listAdded(isList: boolean): void {
    this.#listsAdded = true
    if (!isList) this.#problem ??= "added_tokens that are not a list"
  }

  #isEntry(): boolean {
    return this.#first === "model" && (this.#second === "vocab" || this.#second === "merges")
  }

  /** Whether values at this depth are part of a small part or of an added token. */
  #isKept(depth: number): boolean {
    return (depth >= 1 && isSmallPart(this.#first)) || (depth >= 2 && this.#first === "added_tokens")
  }

  #beginModel(kind: Kind, depth: number): void {
    if (depth === 1) this.#hasModel = kind === "object"
    else if (depth === 2) this.#beginMember(kind)
    else if (this.#isEntry()) this.#beginEntry(kind, depth)
  }

  #beginMember(kind: Kind): void {
    if (this.#second === "vocab") this.#model.vocab = kind
    else if (this.#second === "merges") this.#model.merges = kind
    else this.#model.member(this.#second, [])
  }

  #beginEntry(kind: Kind, depth: number): void {
    const isList = depth === 3 && kind === "list"
    // Unigram: a list of pairs whose indexes are the ids.
    if (isList && this.#second === "vocab") this.#ids.mark(this.#entries++, ofVocabulary)
    if (isList && (this.#second === "merges" || this.#model.vocab === "list")) this.#parts = []
    else this.#entryPart("nested", depth)
  }

  #entryPart(part: Part, depth: number): void {
    if (depth === 4) {
      if (this.#parts !== null && this.#parts.length < mostParts) this.#parts.push(part)
    } else if (depth === 3) {
      if (this.#second === "merges") this.#model.line(part)
      else if (this.#model.vocab === "list") this.#model.piece(null)
      else this.#model.token(this.#third, part)
    }
  }

  #endEntry(): void {
    if (this.#parts !== null && this.#second === "merges") this.#model.pair(this.#parts)
    else if (this.#parts !== null) this.#model.piece(this.#parts)
    this.#parts = null
  }

  #modelValue(value: Value, depth: number): void {
    if (depth === 2) this.#memberValue(value)
    else if (this.#isEntry()) {
      if (depth === 3 && this.#second === "vocab" && value instanceof JsonNumber) this.#ids.mark(value.value, ofVocabulary)
      this.#entryPart({ value }, depth)
    }
  }

  #memberValue(value: Value): void {
    if (this.#second === "vocab") this.#model.vocab = "other"
    else if (this.#second === "merges") this.#model.merges = "other"
    else this.#model.member(this.#second, value)
  }

  #keptValue(value: Value, depth: number): void {
    if (this.#first === "added_tokens" && depth === 3 && this.#third === "id" && value instanceof JsonNumber) this.#ids.mark(value.value, ofAdded)
    this.#keeper.value(value)
    this.#endSmall(depth)
  }

  /** Checks a small part or an added token that ends at this depth. */
  #endSmall(depth: number): void {
    if (depth === 1 && isSmallPart(this.#first)) {
      const part = this.#keeper.take()
      if (part !== undefined) this.#problem ??= problemOfPart(this.#first, part)
    } else if (depth === 2 && this.#first === "added_tokens") this.#endAdded()
  }

  #endAdded(): void {
    const part = this.#keeper.take()
    const wrong = part === undefined ? null : addedToken(part)
    if (wrong !== null) this.#problem ??= `an invalid or missing ${wrong.replace(/^\./, "")} in added_tokens[${this.#addedAt}]`
    this.#addedAt++
  }
}

/** Reads a `tokenizer.json` as it arrives. Null if the file is not a tokenizer. */
export const scanTokenizer = (of: string): Sink<TokenizerFacts | null> => {
  const visitor = new TokenizerVisitor()
  const scanner = new JsonScanner(of, visitor)
  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      return visitor.facts()
    }
  }
}
