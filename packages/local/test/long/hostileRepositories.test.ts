import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Schema } from "effect"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { SampleHub } from "../../src/hub/SampleHub.ts"
import { type Content, makeRepository } from "../../src/hub/SampleRepository.ts"
import { tinyConfig, tinyFiles } from "../hub/tinyFiles.ts"

const Told = Schema.fromJsonString(Schema.Struct({ outcome: Schema.String, memory: Schema.Finite, cpuSeconds: Schema.Finite }))
const program = fileURLToPath(new URL("./inspectProcess.ts", import.meta.url))
const small = makeRepository({ name: "odd/small", commits: [{ title: "Small", files: tinyFiles(1) }] })
const good = tinyFiles(1)
const mebi = 1024 * 1024

const filled = (size: number, piece: string, head: string, tail: string): Uint8Array => {
  const bytes = Buffer.alloc(size, piece)
  bytes.write(head)
  bytes.write(tail, size - tail.length)
  return bytes
}

/** A safetensors file with this header. */
const headed = (header: string | Uint8Array, dataBytes: number): Content => {
  const bytes = Buffer.from(header)
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(bytes.length))
  return { head: Buffer.concat([length, bytes]), size: 8 + bytes.length + dataBytes }
}

const tensors = (count: number) =>
  `{${Array.from({ length: count }, (_, at) => `"t.${at}.${(at * 7919) % 1000}":{"dtype":"U8","shape":[1],"data_offsets":[${at},${at + 1}]}`).join()}}`
const placed = (count: number) =>
  `{"weight_map":{${Array.from({ length: count }, (_, at) => `"${at.toString(36)}_${"x".repeat(60)}":"model.safetensors"`).join()}}}`
const experts = (count: number) =>
  `{"weight_map":{${Array.from({ length: count }, (_, at) => `"language_model.model.layers.${at % 60}.mlp.experts.${Math.floor(at / 60)}.down_proj.weight_packed":"model.safetensors"`).join()}}}`
const expertName = (at: number) => `model.layers.${at % 60}.mlp.experts.${Math.floor(at / 60)}.down_proj.weight_packed`
/** A valid repository with the maximum size of everything: `count` tensors in `files` weight files. */
const whole = (count: number, files: number) => {
  const ofFile = Array.from({ length: files }, (_, file) => Array.from({ length: Math.ceil(count / files) }, (_, at) => expertName(at * files + file)))
  const pathOf = (file: number) => (files === 1 ? "model.safetensors" : `model-${file}.safetensors`)
  return {
    // An unknown layout, so that no module counts as missing.
    "config.json": JSON.stringify({ ...tinyConfig, architectures: ["OlmoeForCausalLM"], model_type: "olmoe", a: Array.from({ length: 45_000 }, () => ({})) }),
    "tokenizer_config.json": JSON.stringify({ chat_template: "{{ x }}".repeat(120_000), a: Array.from({ length: 45_000 }, () => ({})) }),
    "chat_template.jinja": "{{ x }}".repeat(140_000),
    ...Object.fromEntries(
      ofFile.map((names, file) => [
        pathOf(file),
        headed(`{${names.map((name, at) => `"${name}":{"dtype":"U8","shape":[1],"data_offsets":[${at},${at + 1}]}`).join()}}`, names.length)
      ])
    ),
    "model.safetensors.index.json": `{"weight_map":{${ofFile.flatMap((names, file) => names.map((name) => `"${name}":"${pathOf(file)}"`)).join()}}}`
  }
}
const index = (text: string | Uint8Array) => ({ "model.safetensors.index.json": text })
/** The maximum number of values in headers, in members that engines ignore, in `files` weight files. */
const values = (files: number) => ({
  ...index(`{"weight_map":{${Array.from({ length: files }, (_, at) => `"t.${at}":"model-${at}.safetensors"`).join()}}}`),
  ...Object.fromEntries(
    Array.from({ length: files }, (_, at) => [
      `model-${at}.safetensors`,
      headed(`{"t.${at}":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":[${"0,".repeat(4_900_000)}0]}}`, 1)
    ])
  )
})
const unlike = (count: number) =>
  `{"weight_map":{${Array.from({ length: count }, (_, at) => `"${[...at.toString(26)].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 26))).join("")}":"model.safetensors"`).join()}}}`

/** The memory limits of the chart for the server, which are lower than the operator's. V8 uses all memory that it may use. */
const asCharted = ["--max-semi-space-size=8", "--max-old-space-size=256"]

const inspected = (
  files: Readonly<Record<string, string | Uint8Array | Content>>,
  faults: (request: HubRequest) => HubFault | undefined,
  depth: "few" | "all" = "few"
) =>
  Effect.gen(function* () {
    const { address } = yield* SampleHub
    const run = promisify(execFile)
    const { stdout } = yield* Effect.promise(() =>
      run(process.execPath, ["--expose-gc", ...asCharted, program], {
        env: { ...process.env, HF_ENDPOINT: address, HUB_RETRIES: "0", HUB_PREVIEW_TIMEOUT: "1 minute", DEPTH: depth }
      })
    )
    return yield* Schema.decodeEffect(Told)(stdout)
  }).pipe(
    Effect.provide(
      SampleHub.layer({
        port: 0,
        repositories: [
          small,
          makeRepository({ name: "odd/model", commits: [{ title: "Hostile", files: "adapter_config.json" in files ? files : { ...good, ...files } }] })
        ],
        faults: (request) => (request.path.includes("odd/small") ? undefined : faults(request))
      })
    )
  )

/** The small repository turned into an adapter of its own model. */
const adapting = (config: Readonly<Record<string, unknown>>, header: string | Uint8Array, dataBytes: number) => ({
  "adapter_config.json": JSON.stringify({
    peft_type: "LORA",
    r: 8,
    lora_alpha: 16,
    target_modules: ["q_proj"],
    base_model_name_or_path: "odd/small",
    ...config
  }),
  "adapter_model.safetensors": headed(header, dataBytes)
})
const pairs = (count: number) =>
  `{${Array.from({ length: count }, (_, at) => `"base_model.model.model.layers.${at % 60}.mlp.experts.${Math.floor(at / 60)}.q_proj.lora_${at % 2 === 0 ? "A" : "B"}.weight":{"dtype":"U8","shape":[1],"data_offsets":[${at},${at + 1}]}`).join()}}`

/** A tokenizer of almost the maximum size with pieces of up to `longest` bytes. */
const tokenizer = (open: string, longest: number, piece: (at: number) => string, close: string) => {
  const pieces = Array.from({ length: Math.floor((8 * mebi - 200) / (longest + 1)) }, (_, at) => piece(at))
  return { "tokenizer.json": `{"added_tokens":[],"model":${open}${pieces.join()}${close}}` }
}
const emptyModel = '{"vocab":{},"merges":[]}'
/** A different, shortest possible text for each number. */
const short = (at: number) => at.toString(36)
const never = () => undefined
const atInfo = (fault: HubFault) => (request: HubRequest) => (request.path.startsWith("/api/") ? fault : undefined)
const atConfig = (fault: HubFault) => (request: HubRequest) => (request.file === "config.json" ? fault : undefined)

/** `HOSTILE=all npx vitest run --project contract packages/local/test/long/hostileRepositories.test.ts` runs every case and prints its cost. */
const all = process.env.HOSTILE === "all"

type Case = readonly [
  name: string,
  files: Readonly<Record<string, string | Uint8Array | Content>>,
  faults: (request: HubRequest) => HubFault | undefined,
  outcome: RegExp,
  /** `all`: as a run reads it, including a tokenizer of 8 MiB. */
  depth?: "all"
]

const cases: ReadonlyArray<() => Case> = [
  () => ["an index of 32 MiB of names", index(placed(330_000)), never, /^unsupported_format/],
  () => ["an index of 300,000 experts", index(experts(300_000)), never, /^unsupported_format: The index lists tensors/],
  () => ["an index of names that have nothing in common", index(unlike(600_000)), never, /^unsupported_format/],
  () => ["an index of more than 32 MiB", index(filled(33 * mebi, " ", "{", "}")), never, /^unsupported_format/],
  () => ["an index of nested lists", index(filled(31 * mebi, "[", '{"a":', "}")), never, /^unsupported_format/],
  () => ["an index of millions of values", index(filled(31 * mebi, "0,", '{"a":[', "0]}")), never, /^unsupported_format/],
  () => ["a header of 15 MiB of tensors", { "model.safetensors": headed(tensors(220_000), 220_000) }, never, /^(served|unsupported)/],
  () => [
    "a header of a single text of 15 MiB",
    { "model.safetensors": headed(filled(15 * mebi, "a", '{"__metadata__":{"a":"', '"}}'), 0) },
    never,
    /^unsupported_format/
  ],
  () => [
    "a header of 15 MiB of metadata",
    { "model.safetensors": headed(filled(15 * mebi, '"aa":"",', '{"__metadata__":{"a":"",', '"aa":""}}'), 0) },
    never,
    /^unsupported_format/
  ],
  () => ["a configuration of four million values", { "config.json": filled(4 * mebi - 1, "0,", '{"a":[0', "0]}") }, never, /^unsupported_format/],
  () => ["a configuration of lists", { "config.json": filled(4 * mebi - 1, "[],", '{"a":[[],', "[]]}") }, never, /^unsupported_format/],
  () => [
    "the largest configuration that is read",
    { "config.json": JSON.stringify({ ...tinyConfig, a: Array.from({ length: 45_000 }, () => ({})) }) },
    never,
    /^served/
  ],
  () => ["a template of one mebibyte", { "tokenizer_config.json": JSON.stringify({ chat_template: "{{".repeat(mebi) }) }, never, /^served|^unsupported/],
  () => ["a hub that describes it without end", {}, atInfo({ kind: "endless" }), /^unsupported_format/],
  () => ["a hub that sends a file without end", {}, atConfig({ kind: "endless" }), /^unavailable/],
  () => [
    "a description that unpacks to a gibibyte",
    {},
    atInfo({ kind: "body", body: gzipSync(Buffer.alloc(1024 * mebi, " ")), headers: { "content-encoding": "gzip" } }),
    /^unsupported_format/
  ],
  () => [
    "a file that unpacks to a quarter of a gibibyte",
    {},
    atConfig({ kind: "body", body: gzipSync(Buffer.alloc(256 * mebi, " ")), headers: { "content-encoding": "gzip" } }),
    /^unavailable/
  ],
  () => ["a model that is as large as it may be in everything", whole(120_000, 1), never, /^served/],
  () => ["one whose tensors are in six files", whole(170_000, 6), never, /^served/],
  () => ["all headers of the longest that are read", whole(319_998, 6), never, /^served/, "all"],
  () => ["headers of twenty million values", values(4), never, /^(served|unsupported)/, "all"],
  () => [
    "headers that are longer together",
    {
      ...index('{"weight_map":{"t.0":"model-0.safetensors","t.1":"model-1.safetensors"}}'),
      ...Object.fromEntries(
        [0, 1].map((at) => [`model-${at}.safetensors`, headed(filled(13 * mebi, " ", `{"t.${at}":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`, "}"), 1)])
      )
    },
    never,
    /^unsupported_format: The repository's safetensors headers are longer than 25165824 bytes/
  ],
  () => ["an adapter of as many tensors as its header has room for", adapting({}, pairs(27_000), 27_000), never, /^unsupported_format/],
  () => ["an adapter of a single text of 4 MiB", adapting({}, filled(4 * mebi, "a", '{"__metadata__":{"a":"', '"}}'), 0), never, /^unsupported_format/],
  () => [
    "an adapter with a pattern for each of 40,000 modules",
    adapting({ rank_pattern: Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`layers.${at}(a+)+b`, 8])) }, pairs(1_000), 1_000),
    never,
    /^unsupported_format/
  ],
  () => [
    "an adapter whose modules are an expression of a megabyte",
    adapting({ target_modules: `(${"a+".repeat(mebi / 2)})+b` }, pairs(1_000), 1_000),
    never,
    /^unsupported_format/
  ],
  () => ["a tokenizer of lists", tokenizer('{"vocab":{},"merges":[],"a":[', 2, () => "[]", "]}"), never, /^served/, "all"],
  () => [
    "a tokenizer of added tokens, each another",
    tokenizer(`${emptyModel},"added_tokens":[`, 13, (at) => `{"id":${at}}`, "]"),
    never,
    /^unsupported_format/,
    "all"
  ],
  () => ["a vocabulary of eight million bytes", tokenizer('{"vocab":{', 5, () => '"a":1', '},"merges":[]}'), never, /^served/, "all"],
  () => ["a vocabulary of a million tokens", tokenizer('{"vocab":{', 8, (at) => `"${short(at)}":1`, '},"merges":[]}'), never, /^served/, "all"],
  () => [
    "merges before their vocabulary, each of another token",
    tokenizer('{"merges":[', 11, (at) => `"${short(at)} ${short(at)}"`, '],"vocab":{}}'),
    never,
    /^(served|unsupported)/,
    "all"
  ],
  () => [
    "pairs without a vocabulary",
    tokenizer('{"merges":[', 15, (at) => `["${short(at)}","${short(at)}"]`, '],"vocab":{}}'),
    never,
    /^unsupported_format/,
    "all"
  ],
  () => ["a vocabulary of pieces", tokenizer('{"type":"Unigram","vocab":[', 10, (at) => `["${short(at)}",1]`, "]}"), never, /^unsupported_format/, "all"],
  () => [
    "a tokenizer of steps",
    tokenizer(`${emptyModel},"normalizer":{"type":"Sequence","normalizers":[`, 14, () => '{"type":"NFC"}', "]}"),
    never,
    /^served/,
    "all"
  ],
  () => [
    "steps of texts",
    tokenizer(`${emptyModel},"normalizer":{"type":"Prepend","prepend":"x","a":[`, 1_000, () => `"${"é".repeat(499)}"`, "]}"),
    never,
    /^served/,
    "all"
  ],
  () => [
    "a tokenizer nested without end",
    { "tokenizer.json": `{"model":${emptyModel},"a":${"[".repeat(4 * mebi - 100)}${"]".repeat(4 * mebi - 100)}}` },
    never,
    /^unsupported_format/,
    "all"
  ],
  () => ["a merge of blanks", tokenizer('{"merges":[', 4 * mebi, () => `"${" ".repeat(4 * mebi - 2)}"`, '],"vocab":{}}'), never, /^unsupported_format/, "all"],
  () => [
    "steps that want one letter, and have millions",
    tokenizer(`${emptyModel},"decoder":{"type":"Strip","start":0,"stop":0,"content":`, 7 * mebi, () => `"${"é".repeat(2 * mebi - 100)}"`, "}"),
    never,
    /^unsupported_format/,
    "all"
  ]
]
/** These are the most expensive cases of each kind. Each runs in a separate process. */
const often = new Set([0, 1, 4, 6, 10, 14, 18, 26, 27, 29, 30])

describe("a hostile repository or hub costs less than 64 MiB and 5 s of a processor", () => {
  it.live.each(cases.filter((_, at) => all || often.has(at)).map((make) => make()))("%s", ([name, files, faults, outcome, depth]) =>
    Effect.gen(function* () {
      const told = yield* inspected(files, faults, depth)
      if (all) yield* Console.log(`${name}: ${told.outcome}; ${(told.memory / mebi).toFixed(1)} MiB, ${told.cpuSeconds.toFixed(2)} s`)
      assert.match(told.outcome, outcome)
      assert.isBelow(told.memory, 64 * mebi)
      assert.isBelow(told.cpuSeconds, 5)
    })
  )
})
