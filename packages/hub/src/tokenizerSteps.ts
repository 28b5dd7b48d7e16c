import {
  bool,
  char,
  either,
  isList,
  isObject,
  type JsonForm,
  type JsonValue,
  list,
  name,
  option,
  record,
  struct,
  text,
  tuple,
  u32,
  usize,
  variant
} from "./JsonForm.ts"

/** The steps of a tokenizer, by their member in `tokenizer.json`. */
interface Steps {
  /** The types that the tokenizers library reads (`tokenizers/src`, each `*Wrapper`), with their required members. */
  readonly kinds: ReadonlyMap<string, JsonForm>
  /** The types that it also reads without a name or under an unknown name, as in files of versions without names. */
  readonly unnamed: ReadonlyArray<string>
  /** Whether it tries those first, regardless of the name. */
  readonly unnamedFirst?: boolean
  /** The member of a `Sequence` that has its steps. */
  readonly within: string
}

const kindsOf = (kinds: Readonly<Record<string, JsonForm>>) => new Map(Object.entries(kinds))
const bare: JsonForm = (value) => (isObject(value) ? null : "")
const pattern = variant({ String: text, Regex: text })
const behavior = name("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
const byteLevel = struct({ add_prefix_space: bool, trim_offsets: bool }, { use_regex: bool })
const replace = struct({ pattern, content: text })
const bert = struct({ clean_text: bool, handle_chinese_chars: bool, lowercase: bool }, { strip_accents: option(bool) })
const framed = struct({ sep: tuple(text, u32), cls: tuple(text, u32) })
const pieces = list(variant({ Sequence: struct({ id: name("A", "B"), type_id: u32 }), SpecialToken: struct({ id: text, type_id: u32 }) }))

const metaspaceMembers = struct(
  { replacement: char },
  { prepend_scheme: name("first", "never", "always"), split: option(bool), add_prefix_space: option(bool), str_rep: option(text) }
)
const metaspace: JsonForm = (value) =>
  metaspaceMembers(value) ?? (isObject(value) && value.get("add_prefix_space") === false && value.get("prepend_scheme") !== "never" ? ".prepend_scheme" : null)

const utf8 = new TextDecoder("utf-8", { fatal: true })
const isText = (bytes: Uint8Array) => {
  try {
    return utf8.decode(bytes) !== undefined
  } catch {
    return false
  }
}
const unpadded = (base64: string) => base64.replace(/={1,2}$/, "")

/** SentencePiece's table: in base64, the length of a trie, the trie, and texts. */
const charsmap: JsonForm = (value) => {
  const bytes = Buffer.from(typeof value === "string" ? value : "", "base64")
  if (bytes.length < 4 || unpadded(bytes.toString("base64")) !== unpadded(String(value))) return ""
  const trie = 4 + 4 * Math.floor(bytes.readUInt32LE(0) / 4)
  return bytes.length >= trie && isText(bytes.subarray(trie)) ? null : ""
}

const all: Readonly<Record<string, Steps>> = {
  normalizer: {
    kinds: kindsOf({
      Bert: bert,
      BertNormalizer: bert,
      ByteLevel: bare,
      Lowercase: bare,
      NFC: bare,
      NFD: bare,
      NFKC: bare,
      NFKD: bare,
      Nmt: bare,
      Precompiled: struct({ precompiled_charsmap: charsmap }),
      Prepend: struct({ prepend: text }),
      Replace: replace,
      Strip: struct({ strip_left: bool, strip_right: bool }),
      StripAccents: bare
    }),
    unnamed: ["BertNormalizer", "Strip", "Sequence", "Replace", "Prepend"],
    within: "normalizers"
  },
  pre_tokenizer: {
    kinds: kindsOf({
      BertPreTokenizer: bare,
      ByteLevel: byteLevel,
      CharDelimiterSplit: struct({ delimiter: char }),
      Digits: struct({ individual_digits: bool }),
      FixedLength: struct({}, { length: usize }),
      Metaspace: metaspace,
      Punctuation: struct({}, { behavior }),
      Split: struct({ pattern, behavior, invert: bool }),
      UnicodeScripts: bare,
      Whitespace: bare,
      WhitespaceSplit: bare
    }),
    unnamed: [],
    within: "pretokenizers"
  },
  post_processor: {
    kinds: kindsOf({
      BertProcessing: framed,
      ByteLevel: byteLevel,
      RobertaProcessing: framed,
      TemplateProcessing: struct({ single: pieces, pair: pieces, special_tokens: record(struct({ id: text, ids: list(u32), tokens: list(text) })) })
    }),
    unnamed: ["BertProcessing", "TemplateProcessing"],
    unnamedFirst: true,
    within: "processors"
  },
  decoder: {
    kinds: kindsOf({
      BPEDecoder: struct({ suffix: text }),
      ByteFallback: bare,
      ByteLevel: byteLevel,
      CTC: struct({ pad_token: text, word_delimiter_token: text, cleanup: bool }),
      Fuse: bare,
      Metaspace: metaspace,
      Replace: replace,
      Strip: struct({ content: char, start: usize, stop: usize }),
      WordPiece: struct({ prefix: text, cleanup: bool })
    }),
    unnamed: ["BPEDecoder", "WordPiece", "CTC", "Replace", "Strip"],
    within: "decoders"
  }
}

const problemOfStep = (steps: Steps, value: JsonValue, place: string): string | null => {
  if (!isObject(value)) return `a ${place} that is not an object`
  const type = value.get("type")
  const typeName = typeof type === "string" ? type : null
  const known = typeName === "Sequence" || (typeName !== null && steps.kinds.has(typeName))
  // Only if it matters: a repeated validation of nested steps takes exponential time.
  if ((!known || steps.unnamedFirst === true) && steps.unnamed.some((kind) => problemOfKind(steps, kind, value, place) === null)) return null
  if (typeName === null) return `a ${place} whose type is not a string`
  return known ? problemOfKind(steps, typeName, value, place) : `a ${place} of the unknown type ${typeName.slice(0, 64)}`
}

const problemOfKind = (steps: Steps, kind: string, value: JsonValue, place: string): string | null => {
  if (kind !== "Sequence") {
    const at = steps.kinds.get(kind)?.(value) ?? null
    return at === null ? null : `a ${place} of the type ${kind} with an invalid or missing ${at.replace(/^\./, "")}`
  }
  const within = isObject(value) ? value.get(steps.within) : undefined
  if (within === undefined || !isList(within)) return `a ${place} of the type Sequence with an invalid or missing ${steps.within}`
  for (const [at, step] of within.entries()) {
    const problem = problemOfStep(steps, step, `${place}.${steps.within}[${at}]`)
    if (problem !== null) return problem
  }
  return null
}

const direction = name("Left", "Right")
const otherParts: ReadonlyMap<string, JsonForm> = new Map([
  ["version", (value) => (value === "1.0" ? null : "")],
  ["truncation", option(struct({ max_length: usize, strategy: name("LongestFirst", "OnlyFirst", "OnlySecond"), stride: usize }, { direction }))],
  [
    "padding",
    option(
      struct(
        { strategy: either(name("BatchLongest"), variant({ Fixed: usize })), direction, pad_id: u32, pad_type_id: u32, pad_token: text },
        { pad_to_multiple_of: option(usize) }
      )
    )
  ]
])

/** The small members of a `tokenizer.json`: all except the model and the added tokens. */
export const isSmallPart = (part: string): boolean => Object.hasOwn(all, part) || otherParts.has(part)

/**
 * Why the tokenizers library rejects such a member, as words that follow "tokenizer.json has"; null if it accepts it.
 */
export const problemOfPart = (part: string, value: JsonValue): string | null => {
  const other = otherParts.get(part)
  if (other !== undefined) {
    const at = other(value)
    return at === null ? null : `a wrong ${part}${at}`
  }
  const steps = Object.hasOwn(all, part) ? all[part] : undefined
  return steps === undefined || value === null ? null : problemOfStep(steps, value, part)
}

/** A token that was added to a vocabulary. */
export const addedToken = struct({ id: u32, content: text, single_word: bool, lstrip: bool, rstrip: bool, normalized: bool, special: bool })
