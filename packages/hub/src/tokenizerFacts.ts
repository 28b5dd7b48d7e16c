import { JsonKeeper } from "./JsonKeeper.ts"
import { JsonNumber, JsonScanner } from "./JsonScanner.ts"
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

/**
 * Reads a `tokenizer.json` as it arrives. It keeps only a flag per id, a hash per token, and the small parts. Null if
 * the file is not a tokenizer.
 */
export const scanTokenizer = (of: string): Sink<TokenizerFacts | null> => {
  const ids = new Ids()
  const model = new TokenizerModel()
  const keeper = new JsonKeeper()
  let problem: string | null = null
  let isObject = false
  let hasModel = false
  let listsAdded = false
  let entries = 0
  let addedAt = 0
  /** The current path: names in the outermost object, within that, and in an entry of the vocabulary. */
  let first = ""
  let second = ""
  let third = ""
  /** The parts of an open entry in list form. */
  let parts: Array<Part> | null = null
  const isEntry = () => first === "model" && (second === "vocab" || second === "merges")

  const ofEntry = (part: Part, depth: number) => {
    if (depth === 4) {
      if (parts !== null && parts.length < mostParts) parts.push(part)
    } else if (depth === 3) {
      if (second === "merges") model.line(part)
      else if (model.vocab === "list") model.piece(null)
      else model.token(third, part)
    }
  }

  const endEntry = () => {
    if (parts !== null && second === "merges") model.pair(parts)
    else if (parts !== null) model.piece(parts)
    parts = null
  }

  const beginModel = (kind: "object" | "list", depth: number) => {
    if (depth === 1) hasModel = kind === "object"
    else if (depth === 2 && second === "vocab") model.vocab = kind
    else if (depth === 2 && second === "merges") model.merges = kind
    else if (depth === 2) model.member(second, [])
    else if (isEntry()) {
      // Unigram: a list of pairs whose indexes are the ids.
      if (depth === 3 && kind === "list" && second === "vocab") ids.mark(entries++, ofVocabulary)
      const pairs = second === "merges" || model.vocab === "list"
      if (depth === 3 && kind === "list" && pairs) parts = []
      else ofEntry("nested", depth)
    }
  }

  const ofModel = (value: string | boolean | null | JsonNumber, depth: number) => {
    if (depth === 2 && second === "vocab") model.vocab = "other"
    else if (depth === 2 && second === "merges") model.merges = "other"
    else if (depth === 2) model.member(second, value)
    else if (isEntry()) {
      if (depth === 3 && second === "vocab" && value instanceof JsonNumber) ids.mark(value.value, ofVocabulary)
      ofEntry({ value }, depth)
    }
  }

  const endSmall = (depth: number) => {
    if (depth === 1 && isSmallPart(first)) {
      const part = keeper.take()
      if (part !== undefined) problem ??= problemOfPart(first, part)
    } else if (depth === 2 && first === "added_tokens") {
      const part = keeper.take()
      const wrong = part === undefined ? null : addedToken(part)
      if (wrong !== null) problem ??= `a wrong or no ${wrong.replace(/^\./, "")} in added_tokens[${addedAt}]`
      addedAt++
    }
  }

  const isKept = (depth: number) => (depth >= 1 && isSmallPart(first)) || (depth >= 2 && first === "added_tokens")

  const scanner = new JsonScanner(of, {
    ignores: (depth) => (depth > 4 && first === "model") || (depth >= 3 && first === "model" && !isEntry()),
    begin: (kind, depth) => {
      if (depth === 0) isObject = kind === "object"
      else if (first === "model") beginModel(kind, depth)
      else if (isKept(depth)) keeper.begin(kind)
      else if (depth === 1 && first === "added_tokens") {
        listsAdded = true
        if (kind !== "list") problem ??= "added_tokens that are no list"
      }
    },
    end: (depth) => {
      if (first === "model" && depth === 3 && isEntry()) endEntry()
      else if (isKept(depth)) {
        keeper.end()
        endSmall(depth)
      }
    },
    name: (name, depth) => {
      if (depth === 1) {
        first = name
        if (name !== "model" && name !== "added_tokens" && !isSmallPart(name)) problem ??= `the member ${name.slice(0, 64)}, which none has,`
      } else if (depth === 2) second = name
      else if (depth === 3) third = name
      if (isKept(depth - 1)) keeper.name(name)
    },
    value: (value, depth) => {
      if (first === "model") ofModel(value, depth)
      else if (depth === 1 && first === "added_tokens") {
        listsAdded = true
        problem ??= "added_tokens that are no list"
      } else if (isKept(depth)) {
        if (first === "added_tokens" && depth === 3 && third === "id" && value instanceof JsonNumber) ids.mark(value.value, ofAdded)
        keeper.value(value)
        endSmall(depth)
      }
    }
  })
  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      if (!isObject || !hasModel) return null
      return { highest: ids.highest(), problem: model.problem() ?? problem, listsAdded }
    }
  }
}
