import { JsonNumber, JsonScanner } from "./JsonScanner.ts"
import type { Sink } from "./safetensors.ts"

/** Where a sequence of steps of each kind has them. */
const steps: Readonly<Record<string, string>> = { normalizer: "normalizers", pre_tokenizer: "pretokenizers", post_processor: "processors", decoder: "decoders" }

/** The kinds of steps that the tokenizers library reads (`tokenizers/src`, each `*Wrapper`): a file with another one is read by no engine. */
const kinds: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    normalizer: new Set([
      "BertNormalizer",
      "ByteLevel",
      "Lowercase",
      "NFC",
      "NFD",
      "NFKC",
      "NFKD",
      "Nmt",
      "Precompiled",
      "Prepend",
      "Replace",
      "Sequence",
      "Strip",
      "StripAccents"
    ]),
    pre_tokenizer: new Set([
      "BertPreTokenizer",
      "ByteLevel",
      "CharDelimiterSplit",
      "Digits",
      "FixedLength",
      "Metaspace",
      "Punctuation",
      "Sequence",
      "Split",
      "UnicodeScripts",
      "Whitespace",
      "WhitespaceSplit"
    ]),
    post_processor: new Set(["BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"]),
    decoder: new Set(["BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Fuse", "Metaspace", "Replace", "Sequence", "Strip", "WordPiece"])
  })
)

/** The kinds of models that it reads where a kind is named (`ModelWrapper`); where none is, it tries each. */
const models: ReadonlySet<string> = new Set(["BPE", "Unigram", "WordLevel", "WordPiece"])

/** What of a `tokenizer.json` can contradict its model. */
export interface TokenizerFacts {
  /** The highest id of its vocabulary without the tokens that were added to it, which real models have without a row; -1 for none. */
  readonly highest: number
  /** A step of a kind that no engine reads, at any place in a sequence of such, as `pre_tokenizer Odd`, or such a model; or null. */
  readonly unknownStep: string | null
}

/** Ids beyond every real vocabulary, of which none is marked: the highest of them counts. */
const mostIds = 1 << 24
/** Marks of an id: of the vocabulary, and of the tokens that were added to it. */
const ofVocabulary = 1
const ofAdded = 2

const unnamedModel = "model whose type is no text"

/** Reads a `tokenizer.json` as it arrives and keeps of it no more than a mark for each id; null where it is no tokenizer. */
export const scanTokenizer = (of: string): Sink<TokenizerFacts | null> => {
  let marks = new Uint8Array(1 << 16)
  let highest = -1
  let beyond = -1
  let entries = 0
  let unknownStep: string | null = null
  let isObject = false
  let hasModel = false
  /** The names that lead to what is read now: of the outermost object, and within that. */
  let first = ""
  let second = ""
  let third = ""
  /** Of steps within steps, by their depth. */
  const names: Array<string> = []
  const mark = (id: number, as: number) => {
    if (!Number.isInteger(id) || id < 0) return
    if (id >= mostIds) {
      if (as === ofVocabulary) beyond = Math.max(beyond, id)
      return
    }
    if (id >= marks.length) {
      const longer = new Uint8Array(Math.min(mostIds, Math.max(id + 1, marks.length * 2)))
      longer.set(marks)
      marks = longer
    }
    marks[id] = (marks[id] ?? 0) | as
    if (as === ofVocabulary) highest = Math.max(highest, id)
  }
  const scanner = new JsonScanner(of, {
    ignores: (depth) => (depth > 3 && !kinds.has(first)) || (depth === 3 && first === "model" && second !== "vocab"),
    begin: (kind, depth) => {
      if (depth === 0) isObject = kind === "object"
      if (depth === 1 && first === "model") hasModel = kind === "object"
      if (depth === 2 && first === "model" && second === "type") unknownStep ??= unnamedModel
      // Of Unigram: a list of pairs, whose places are the ids.
      if (depth === 3 && first === "model" && second === "vocab" && kind === "list") mark(entries++, ofVocabulary)
    },
    end: () => {},
    name: (name, depth) => {
      if (depth === 1) first = name
      else if (depth === 2) second = name
      else if (depth === 3) third = name
      names[depth] = name
    },
    value: (value, depth) => {
      const number = value instanceof JsonNumber ? value.value : Number.NaN
      if (first === "model" && second === "vocab" && depth === 3) mark(number, ofVocabulary)
      if (first === "added_tokens" && third === "id" && depth === 3) mark(number, ofAdded)
      if (first === "model" && second === "type" && depth === 2 && (typeof value !== "string" || !models.has(value)))
        unknownStep ??= typeof value === "string" ? `model ${value.slice(0, 64)}` : unnamedModel
      const known = kinds.get(first)
      if (known === undefined || typeof value !== "string" || known.has(value) || names[depth] !== "type" || depth % 2 === 1) return
      for (let outer = 2; outer < depth; outer += 2) if (names[outer] !== steps[first]) return
      unknownStep ??= `${first} ${value.slice(0, 64)}`
    }
  })
  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      if (!isObject || !hasModel) return null
      while (highest >= 0 && marks[highest] !== ofVocabulary) highest--
      return { highest: Math.max(highest, beyond), unknownStep }
    }
  }
}
