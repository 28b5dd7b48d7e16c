import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Schema } from "effect"
import { toBfloat16 } from "../../packages/reference-engine/src/Tensor.ts"
import type { Files } from "./serveSample.ts"

const Header = Schema.fromJsonString(
  Schema.Record(
    Schema.String,
    Schema.Union([Schema.Struct({ dtype: Schema.String, data_offsets: Schema.Tuple([Schema.Int, Schema.Int]) }), Schema.Record(Schema.String, Schema.String)])
  )
)
const AnyObject = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))

const sound = trainedFiles("tiny-chat")
const weightsFile = "model.safetensors"
const bytesOf = (name: string) => sound.get(name) ?? new Uint8Array()
const textOf = (name: string) => Buffer.from(bytesOf(name)).toString("utf8")
const withFile = (name: string, bytes: Uint8Array): Files => new Map([...sound, [name, bytes]])
type Change = (fields: Readonly<Record<string, unknown>>) => object
const changedJson = (name: string, change: Change) => Buffer.from(JSON.stringify(change(Schema.decodeUnknownSync(AnyObject)(textOf(name)))))
const withJson = (name: string, change: Change): Files => withFile(name, changedJson(name, change))

/** Changes the values of the tensors with matching names. They stay bfloat16. */
const withTensors = (names: RegExp, change: (values: Float32Array) => void): Files => {
  const bytes = Uint8Array.from(bytesOf(weightsFile))
  const view = new DataView(bytes.buffer)
  const length = Number(view.getBigUint64(0, true))
  const header = Schema.decodeUnknownSync(Header)(Buffer.from(bytes.subarray(8, 8 + length)).toString("utf8"))
  for (const [name, tensor] of Object.entries(header)) {
    if (!("data_offsets" in tensor) || !names.test(name)) continue
    const offsets = tensor.data_offsets
    if (typeof offsets === "string") continue
    const [from, to] = offsets
    const base = 8 + length + from
    const wide = new DataView(new ArrayBuffer(4))
    const values = Float32Array.from({ length: (to - from) / 2 }, (_, i) => {
      wide.setUint16(2, view.getUint16(base + i * 2, true), true)
      return wide.getFloat32(0, true)
    })
    change(values)
    values.forEach((value, i) => {
      view.setUint16(base + i * 2, toBfloat16(value), true)
    })
  }
  return withFile(weightsFile, bytes)
}

/** A deterministic sequence of numbers between -1 and 1. */
const noise = () => {
  let state = 1
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 31 - 1
  }
}

const quantized = (levels: number) => (values: Float32Array) => {
  for (let from = 0; from < values.length; from += 128) {
    const group = values.subarray(from, from + 128)
    const largest = group.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9)
    for (const [i, value] of group.entries()) group[i] = (Math.round((value / largest) * levels) / levels) * largest
  }
}

const swapped = (rows: readonly [number, number], width: number) => (values: Float32Array) => {
  const [a, b] = [values.slice(rows[0] * width, (rows[0] + 1) * width), values.slice(rows[1] * width, (rows[1] + 1) * width)]
  values.set(b, rows[0] * width)
  values.set(a, rows[1] * width)
}

const tokenizerModel = (change: (model: { vocab: Readonly<Record<string, number>>; merges: ReadonlyArray<unknown> }) => object) =>
  withJson("tokenizer.json", (fields) => {
    const model = Schema.decodeUnknownSync(Schema.Struct({ vocab: Schema.Record(Schema.String, Schema.Int), merges: Schema.Array(Schema.Unknown) }))(
      fields.model
    )
    return { ...fields, model: { ...Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Unknown))(fields.model), ...change(model) } }
  })

const template = (from: string, to: string) =>
  withJson("tokenizer_config.json", (fields) => ({ ...fields, chat_template: String(fields.chat_template).replace(from, to) }))

const matrices = /_proj|lm_head|embed_tokens/

/** Not a fault: the same weights in another precision. */
export const float32Files = (): Files => {
  const bytes = bytesOf(weightsFile)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const length = Number(view.getBigUint64(0, true))
  const header = Schema.decodeUnknownSync(AnyObject)(Buffer.from(bytes.subarray(8, 8 + length)).toString("utf8"))
  const Tensor = Schema.Struct({ dtype: Schema.Literal("BF16"), shape: Schema.Array(Schema.Int), data_offsets: Schema.Tuple([Schema.Int, Schema.Int]) })
  const wide = Object.fromEntries(
    Object.entries(header).map(([name, value]) => {
      if (name === "__metadata__") return [name, value]
      const { data_offsets, shape } = Schema.decodeUnknownSync(Tensor)(value)
      return [name, { dtype: "F32", shape, data_offsets: [data_offsets[0] * 2, data_offsets[1] * 2] }]
    })
  )
  const json = JSON.stringify(wide)
  const head = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8, " "), "utf8")
  const count = (bytes.length - 8 - length) / 2
  const out = Buffer.alloc(8 + head.length + count * 4)
  out.writeBigUInt64LE(BigInt(head.length), 0)
  head.copy(out, 8)
  for (let i = 0; i < count; i++) out.writeUInt16LE(view.getUint16(8 + length + i * 2, true), 8 + head.length + i * 4 + 2)
  return withFile(weightsFile, out)
}

/** Five hundred weights with flipped signs, which no fingerprint detects. */
export const quietlyAltered = (): Files =>
  withTensors(/layers\.0\.mlp\.down_proj/, (values) => {
    for (const [i, value] of values.subarray(0, 500).entries()) values[i] = -value
  })

/** Files that differ from the commit: the fault, and how to create it. */
export const fileMutants = {
  file_tensor_zero: { spoils: "one tensor is zero", files: () => withTensors(/layers\.1\.mlp\.down_proj/, (values) => values.fill(0)) },
  file_tensor_random: {
    spoils: "one tensor is noise",
    files: () =>
      withTensors(/layers\.2\.self_attn\.q_proj/, (values) => {
        const next = noise()
        for (const i of values.keys()) values[i] = next() * 0.1
      })
  },
  file_cut: {
    spoils: "the last fifth of one tensor reads zero",
    files: () => withTensors(/layers\.3\.mlp\.up_proj/, (values) => values.fill(0, Math.floor(values.length * 0.8)))
  },
  file_norm_ones: { spoils: "the last norm's weights are all 1", files: () => withTensors(/^model\.norm/, (values) => values.fill(1)) },
  file_one_percent: {
    spoils: "another commit, whose weights differ by 1%",
    files: () =>
      withTensors(matrices, (values) => {
        const next = noise()
        for (const [i, value] of values.entries()) values[i] = value * (1 + 0.01 * next())
      })
  },
  file_int8: { spoils: "weights in 8 bits", files: () => withTensors(matrices, quantized(127)) },
  file_int4: { spoils: "weights in 4 bits", files: () => withTensors(matrices, quantized(7)) },
  file_rows_swapped: { spoils: "two rows of the embedding are swapped", files: () => withTensors(/embed_tokens/, swapped([259, 270], 128)) },
  file_head_rows_swapped: { spoils: "two rows of the output head are swapped", files: () => withTensors(/lm_head/, swapped([259, 270], 128)) },
  file_first_commit: { spoils: "the commit before this one", files: () => trainedFiles("tiny-chat-first") },
  adapter_base_first: { spoils: "the adapter is served with the commit before its base's", files: () => trainedFiles("tiny-chat-first") },
  file_other_model: { spoils: "another model of the same form", files: () => trainedFiles("tiny-chat-sailor") },
  file_vocabulary_swapped: {
    spoils: "two tokens of the tokenizer have each other's ids",
    files: () =>
      tokenizerModel(({ vocab }) => ({
        vocab: Object.fromEntries(Object.entries(vocab).map(([piece, id]) => [piece, id === 259 ? 270 : id === 270 ? 259 : id]))
      }))
  },
  file_merges_fewer: {
    spoils: "half of the tokenizer's merges are missing",
    files: () => tokenizerModel(({ merges }) => ({ merges: merges.slice(0, Math.floor(merges.length / 2)) }))
  },
  file_merges_reversed: {
    spoils: "the tokenizer's merges have another order",
    files: () => tokenizerModel(({ merges }) => ({ merges: [...merges].reverse() }))
  },
  file_template_other: { spoils: "another chat template", files: () => template("'<|' + message['role'] + '|>'", "'<|' + message['role'] + '|> '") },
  file_template_no_bos: { spoils: "a chat template without the begin token", files: () => template("{{- bos_token }}", "") },
  file_template_no_tools: { spoils: "a chat template that shows no tools", files: () => template("{%- if tools %}", "{%- if false %}") },
  file_end_token_wrong: {
    spoils: "the end-of-turn token is a different one",
    files: () =>
      new Map([
        ...withJson("config.json", (fields) => ({ ...fields, eos_token_id: 510 })),
        // Engines also stop at the end token of the tokenizer.
        ["tokenizer_config.json", changedJson("tokenizer_config.json", (fields) => ({ ...fields, eos_token: "<|pad|>" }))],
        ["generation_config.json", Buffer.from(JSON.stringify({ eos_token_id: 510, temperature: 0.7, top_p: 0.9 }))]
      ])
  },
  file_rope_theta: {
    spoils: "the configuration has another base of positions",
    files: () => withJson("config.json", (fields) => ({ ...fields, rope_theta: 100_000 }))
  },
  file_epsilon: {
    spoils: "the configuration has another epsilon of norms, 0.01",
    files: () => withJson("config.json", (fields) => ({ ...fields, rms_norm_eps: 1e-2 }))
  }
} satisfies Readonly<Record<string, { readonly spoils: string; readonly files: () => Files }>>
