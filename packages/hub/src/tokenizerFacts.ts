import { Option, Predicate, Schema } from "effect"

/** Where a sequence of steps of each kind has them. */
const steps: Readonly<Record<string, string>> = { normalizer: "normalizers", pre_tokenizer: "pretokenizers", post_processor: "processors", decoder: "decoders" }

/** The kinds of steps that the tokenizers library reads (`tokenizers/src`, each `*Wrapper`): a file with another one is read by no engine. */
const kinds: Readonly<Record<string, ReadonlySet<string>>> = {
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
}
const decodeAdded = Schema.decodeUnknownOption(Schema.Array(Schema.Struct({ id: Schema.Int })))

/** What of a `tokenizer.json` can contradict its model. */
export interface TokenizerFacts {
  /** The highest id of its vocabulary without the tokens that were added to it, which real models have without a row; -1 for none. */
  readonly highest: number
  /** A step of a kind that no engine reads, at any place in a sequence of such, as `pre_tokenizer Odd`, or null. */
  readonly unknownStep: string | null
}

const unknownStep = (tokenizer: object): string | null => {
  for (const [step, known] of Object.entries(kinds)) {
    const pending: Array<unknown> = [Predicate.hasProperty(tokenizer, step) ? tokenizer[step] : null]
    while (pending.length > 0) {
      const given = pending.pop()
      const type = Predicate.hasProperty(given, "type") ? given.type : null
      if (typeof type === "string" && !known.has(type)) return `${step} ${type.slice(0, 64)}`
      const inner = type === "Sequence" && Predicate.hasProperty(given, steps[step] ?? "") ? given[steps[step] ?? ""] : null
      if (Array.isArray(inner)) for (const one of inner) pending.push(one)
    }
  }
  return null
}

/** From the bytes of a `tokenizer.json`; null where it is no tokenizer. */
export const tokenizerFacts = (bytes: Uint8Array): TokenizerFacts | null => {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    return null
  }
  if (!Predicate.isObject(value) || !Predicate.isObject(value.model)) return null
  const added = new Set(Option.getOrElse(decodeAdded(value.added_tokens), () => []).map(({ id }) => id))
  const { vocab } = value.model
  const ids: Iterable<unknown> = Array.isArray(vocab) ? vocab.keys() : Predicate.isObject(vocab) ? Object.values(vocab) : []
  let highest = -1
  for (const id of ids) if (typeof id === "number" && id > highest && !added.has(id)) highest = id
  return { highest, unknownStep: unknownStep(value) }
}
