import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** What happens to requests that reach the end of the longest context. */
export interface ContextEdge {
  /** Whether an answer that does not fit is cut. Otherwise the request is refused. */
  readonly cuts: boolean
  /** Tokens that a prompt cannot use. A longer prompt is refused. */
  readonly unprompted: number
  /** Tokens that an answer cannot use, even if the request allows them. */
  readonly unfilled: number
}

/** `unread`: the prompt contains the tools, but calls stay in the text. `refused`: requests with tools are refused. */
export type ToolCallReading = "read" | "unread" | "refused"

/** The settings of one engine process. Sizes are in bytes, lengths in tokens. */
export interface Arguments {
  readonly model: string
  /** Names that requests may use. Answers contain the first one. */
  readonly servedModelNames: readonly [string, ...ReadonlyArray<string>]
  /** Whether requests may use any other name as well. */
  readonly anyModelName: boolean
  readonly edge: ContextEdge
  readonly host: string
  readonly port: number
  /** `null`: the maximum of the model. */
  readonly maxModelLen: number | null
  readonly maxNumSeqs: number
  readonly maxNumQueuedReqs: number
  readonly seed: number
  /** Memory for weights, working buffers and KV cache together; `null`: the memory of the machine. */
  readonly gpuMemoryBytes: number | null
  /** Simulated GPUs that share the memory evenly. Figures are reported per GPU, as engines do. */
  readonly gpuCount: number
  readonly gpuMemoryUtilization: number
  readonly kvCacheDtype: "auto" | "bfloat16" | "float32"
  readonly blockSize: number
  readonly maxLogprobs: number
  readonly enablePromptTokensDetails: boolean
  /** Whether sequences share common prefixes. */
  readonly prefixCaching: boolean
  /** What happens to tools if the chat template writes them in the supported format. */
  readonly toolCalls: ToolCallReading
  /** Whether reasoning is separated from answers if the chat template writes it in the supported format. */
  readonly readsReasoning: boolean
  /** The name by which requests select the LoRA adapter, and its directory. */
  readonly adapter: { readonly name: string; readonly directory: string } | null
  readonly maxLoraRank: number
  /** A file with the chat template, or its text; `null`: the template of the model. */
  readonly chatTemplate: string | null
  /** Members that replace members of `config.json`. */
  readonly hfOverrides: Readonly<Record<string, unknown>>
}

const decodeOverrides = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

interface Rule {
  readonly help: string
  readonly fallback?: string
  readonly accepts: (text: string) => boolean
}

const integerBetween = (low: number, high: number) => (text: string) => /^\d{1,15}$/.test(text) && Number(text) >= low && Number(text) <= high
const oneOf = (values: ReadonlyArray<string>) => (text: string) => values.includes(text)
const isText = (text: string) => text.length > 0

const rules = new Map<string, Rule>([
  ["model", { help: "directory with config.json, *.safetensors, tokenizer.json (required)", accepts: isText }],
  [
    "served-model-name",
    { help: "the names that requests may give, separated by commas; default: the directory as written", fallback: "", accepts: () => true }
  ],
  ["host", { help: "address to listen on", fallback: "0.0.0.0", accepts: isText }],
  ["port", { help: "port to listen on, 0 for any free one", fallback: "8000", accepts: integerBetween(0, 65_535) }],
  [
    "max-model-len",
    { help: "context length in tokens; default: what the model allows", fallback: "", accepts: (text) => text === "" || integerBetween(1, 2 ** 31)(text) }
  ],
  ["max-num-seqs", { help: "sequences that run at once", fallback: "64", accepts: integerBetween(1, 4096) }],
  ["max-num-queued-reqs", { help: "requests that may wait; beyond it 503", fallback: "256", accepts: integerBetween(1, 65_536) }],
  ["seed", { help: "seed for requests that set none", fallback: "0", accepts: integerBetween(0, Number.MAX_SAFE_INTEGER) }],
  [
    "gpu-memory-bytes",
    {
      help: "memory budget in bytes; default: the machine's memory",
      fallback: "",
      accepts: (text) => text === "" || integerBetween(1, Number.MAX_SAFE_INTEGER)(text)
    }
  ],
  ["gpu-count", { help: "simulated GPUs that share the budget evenly; all figures are for one GPU", fallback: "1", accepts: integerBetween(1, 64) }],
  [
    "gpu-memory-utilization",
    { help: "share of the budget that may be used", fallback: "0.92", accepts: (text) => /^(0?\.\d+|1(\.0+)?)$/.test(text) && Number(text) > 0 }
  ],
  ["dtype", { help: "auto: weights stay as they are stored", fallback: "auto", accepts: oneOf(["auto"]) }],
  ["kv-cache-dtype", { help: "auto (float32), float32 or bfloat16", fallback: "auto", accepts: oneOf(["auto", "bfloat16", "float32"]) }],
  ["block-size", { help: "tokens in a block of the KV cache", fallback: "16", accepts: integerBetween(1, 256) }],
  ["max-logprobs", { help: "the most log-probabilities a request may ask for", fallback: "20", accepts: integerBetween(0, 1000) }],
  ["tensor-parallel-size", { help: "only 1", fallback: "1", accepts: oneOf(["1"]) }],
  ["pipeline-parallel-size", { help: "only 1", fallback: "1", accepts: oneOf(["1"]) }],
  [
    "lora-modules",
    {
      help: "NAME=DIR: a LoRA adapter, and the name by which requests ask for it",
      fallback: "",
      accepts: (text) => text === "" || /^[^=,\s]+=[^=]+$/.test(text)
    }
  ],
  ["max-lora-rank", { help: "the highest rank that an adapter may have", fallback: "16", accepts: integerBetween(1, 8192) }],
  ["chat-template", { help: "a file with the chat template, or its text; default: the model's own", fallback: "", accepts: () => true }],
  ["hf-overrides", { help: "JSON object: members that replace those of config.json", fallback: "{}", accepts: (text) => Option.isSome(decodeOverrides(text)) }],
  ["load-format", { help: "only safetensors", fallback: "safetensors", accepts: oneOf(["auto", "safetensors"]) }]
])
const switches = new Set(["enable-lora", "enable-prompt-tokens-details", "disable-prefix-caching", "disable-reasoning", "disable-tool-calls"])

/** The text of `--help`. */
export const usage = [
  "usage: main.ts --model=DIR [--argument=value ...]",
  ...[...rules].map(([name, rule]) => `  --${name}=  ${rule.help}${rule.fallback ? ` (${rule.fallback})` : ""}`),
  "  --enable-lora  goes with --lora-modules",
  "  --enable-prompt-tokens-details  report prompt_tokens_details in usage",
  "  --disable-prefix-caching  compute every prompt whole",
  "  --disable-reasoning  do not separate reasoning from the answer",
  "  --disable-tool-calls  refuse tools",
  "environment: SEATRIAL_PARENT_PIPE=1 ends the engine when its standard input ends"
].join("\n")

/** Why a word is not a valid argument; null if it is one. `value`: absent if the word has none. */
const wordProblem = (word: string, name: string, value: string | undefined): string | null => {
  if (switches.has(name)) return value === undefined ? null : `argument --${name}: ignored explicit argument '${value}'`
  const rule = rules.get(name)
  if (rule === undefined) return `unrecognized arguments: ${word}`
  if (value === undefined) return `argument --${name}: expected one argument, as --${name}=value`
  return rule.accepts(value) ? null : `argument --${name}: invalid value: '${value}' (${rule.help})`
}

/** The values of the words by name; of a switch, "true". Returns a string with the reason if a word is invalid. */
const readValues = (words: ReadonlyArray<string>): ReadonlyMap<string, string> | string => {
  const values = new Map<string, string>()
  for (const word of words) {
    const [, name, value] = /^--([a-z0-9-]+)(?:=(.*))?$/s.exec(word) ?? []
    if (name === undefined) return `unrecognized arguments: ${word}`
    if (values.has(name)) return `argument --${name}: given twice`
    const problem = wordProblem(word, name, value)
    if (problem !== null) return problem
    values.set(name, value ?? "true")
  }
  return values
}

/** Parses `--argument=value` words. Returns a string with the reason if they are invalid. */
export const parseArguments = (words: ReadonlyArray<string>): Arguments | string => {
  const values = readValues(words)
  if (typeof values === "string") return values
  const text = (name: string) => values.get(name) ?? rules.get(name)?.fallback ?? ""
  const numberOrNull = (name: string) => (text(name) === "" ? null : Number(text(name)))
  if (text("model") === "") return "the following arguments are required: --model"
  const [servedModelName = text("model"), ...otherNames] = text("served-model-name")
    .split(",")
    .filter((name) => name !== "")
  const kvCacheDtype = text("kv-cache-dtype")
  const [adapterName = "", directory = ""] = text("lora-modules").split("=")
  if (adapterName !== "" && !values.has("enable-lora")) return "argument --lora-modules: LoRA is not enabled. Use --enable-lora to enable LoRA."
  return {
    model: text("model"),
    servedModelNames: [servedModelName, ...otherNames],
    anyModelName: false,
    edge: { cuts: true, unprompted: 1, unfilled: 0 },
    host: text("host"),
    port: Number(text("port")),
    maxModelLen: numberOrNull("max-model-len"),
    maxNumSeqs: Number(text("max-num-seqs")),
    maxNumQueuedReqs: Number(text("max-num-queued-reqs")),
    seed: Number(text("seed")),
    gpuMemoryBytes: numberOrNull("gpu-memory-bytes"),
    gpuCount: Number(text("gpu-count")),
    gpuMemoryUtilization: Number(text("gpu-memory-utilization")),
    kvCacheDtype: kvCacheDtype === "bfloat16" || kvCacheDtype === "float32" ? kvCacheDtype : "auto",
    blockSize: Number(text("block-size")),
    maxLogprobs: Number(text("max-logprobs")),
    enablePromptTokensDetails: values.has("enable-prompt-tokens-details"),
    prefixCaching: !values.has("disable-prefix-caching"),
    readsReasoning: !values.has("disable-reasoning"),
    toolCalls: values.has("disable-tool-calls") ? "refused" : "read",
    adapter: adapterName === "" ? null : { name: adapterName, directory },
    maxLoraRank: Number(text("max-lora-rank")),
    chatTemplate: text("chat-template") === "" ? null : text("chat-template"),
    hfOverrides: Option.getOrElse(decodeOverrides(text("hf-overrides")), () => ({}))
  }
}
