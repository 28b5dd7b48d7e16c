import { Schema } from "effect"
import type { Files } from "../mutants/serveSample.ts"

type Tensors = (name: string) => Float32Array
type Json = Readonly<Record<string, unknown>>
type Spoil = (files: Files) => Files

const AnyObject = Schema.Record(Schema.String, Schema.Unknown)
const decodeJson = Schema.decodeUnknownSync(Schema.fromJsonString(AnyObject))
const decodeObject = Schema.decodeUnknownSync(AnyObject)
const Entry = Schema.Struct({ data_offsets: Schema.Tuple([Schema.Int, Schema.Int]) })
const decodeEntry = Schema.decodeUnknownSync(Entry)

/** The file with the weights. */
export const weights = "model.safetensors"
const textOf = (files: Files, name: string) => Buffer.from(files.get(name) ?? new Uint8Array()).toString("utf8")

/** Changes values of 32-bit tensors in a copy of the weights. */
const withTensors =
  (change: (tensors: Tensors) => void): Spoil =>
  (files) => {
    const bytes = new Uint8Array(files.get(weights) ?? [])
    const length = Number(new DataView(bytes.buffer).getBigUint64(0, true))
    const header = decodeJson(Buffer.from(bytes.subarray(8, 8 + length)).toString("utf8"))
    change((name) => {
      const [from, to] = decodeEntry(header[`${name}.weight`]).data_offsets
      return new Float32Array(bytes.buffer, 8 + length + from, (to - from) / 4)
    })
    return new Map([...files, [weights, bytes]])
  }

const withJson =
  (name: string, change: (fields: Json) => Json): Spoil =>
  (files) =>
    new Map([...files, [name, Buffer.from(JSON.stringify(change(decodeJson(textOf(files, name)))))]])

const withTokenizer = (change: (model: Json) => Json): Spoil =>
  withJson("tokenizer.json", (fields) => ({ ...fields, model: { ...decodeObject(fields.model), ...change(decodeObject(fields.model)) } }))

const layer = (index: number, part: string) => `model.layers.${index}.${part}`
const matrices = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
const layers = Array.from({ length: 30 }, (_, index) => index)
const [hidden, headDim, heads, kvHeads] = [576, 64, 9, 3]

const swap = (a: Float32Array, b: Float32Array) => {
  const kept = a.slice()
  a.set(b)
  b.set(kept)
}

/** The order of rows in a GGUF file: the two halves of each head in turns. */
const permute = (values: Float32Array, count: number) => {
  const source = values.slice()
  const half = headDim / 2
  for (let head = 0; head < count; head++)
    for (let row = 0; row < headDim; row++) {
      const from = head * headDim + (row % 2) * half + Math.floor(row / 2)
      values.set(source.subarray(from * hidden, (from + 1) * hidden), (head * headDim + row) * hidden)
    }
}

const round = (values: Float32Array, levels: number) => {
  for (let from = 0; from < values.length; from += 128) {
    const group = values.subarray(from, from + 128)
    const largest = group.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9)
    for (const [at, value] of group.entries()) group[at] = (Math.round((value / largest) * levels) / levels) * largest
  }
}

const eachMatrix = (change: (values: Float32Array) => void) =>
  withTensors((tensor) => {
    for (const index of layers) for (const part of matrices) change(tensor(layer(index, part)))
  })

/** A deterministic sequence of numbers between -1 and 1. */
const noise = () => {
  let state = 1
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 31 - 1
  }
}

export interface SpoiledCopy {
  /** What is wrong with it. */
  readonly fault: string
  /** The row that finds it, at a first trial. */
  readonly row: "reference_agrees" | "tokenizer_agrees" | "template_agrees"
  /** The only file that differs. */
  readonly spoils: string
  readonly files: Spoil
}

/** Faults of real installations, each put into a copy of the model's files. */
export const spoiledCopies: ReadonlyArray<SpoiledCopy> = [
  {
    fault: "rows of Q and K in the order of a GGUF file",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => {
      for (const index of layers) {
        permute(tensor(layer(index, "self_attn.q_proj")), heads)
        permute(tensor(layer(index, "self_attn.k_proj")), kvHeads)
      }
    })
  },
  {
    fault: "layers 10 and 20 swapped",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => {
      for (const part of [...matrices, "input_layernorm", "post_attention_layernorm"]) swap(tensor(layer(10, part)), tensor(layer(20, part)))
    })
  },
  {
    fault: "two heads of Q swapped in layer 12",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => {
      const query = tensor(layer(12, "self_attn.q_proj"))
      const size = headDim * hidden
      swap(query.subarray(0, size), query.subarray(4 * size, 5 * size))
    })
  },
  {
    fault: "K and V of layer 8 swapped",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => swap(tensor(layer(8, "self_attn.k_proj")), tensor(layer(8, "self_attn.v_proj"))))
  },
  {
    fault: "the output of the last MLP halved",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => {
      const down = tensor(layer(29, "mlp.down_proj"))
      for (const [at, value] of down.entries()) down[at] = value / 2
    })
  },
  {
    fault: "the last fifth of one matrix is zero",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => {
      const output = tensor(layer(15, "self_attn.o_proj"))
      output.fill(0, Math.floor(output.length * 0.8))
    })
  },
  {
    fault: "the last norm's weights are all 1",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => tensor("model.norm").fill(1))
  },
  { fault: "matrices rounded to 4 bits once more", row: "reference_agrees", spoils: weights, files: eachMatrix((values) => round(values, 7)) },
  {
    fault: "noise of 10% on all matrices",
    row: "reference_agrees",
    spoils: weights,
    files: withTensors((tensor) => {
      const next = noise()
      for (const index of layers)
        for (const part of matrices) {
          const values = tensor(layer(index, part))
          for (const [at, value] of values.entries()) values[at] = value * (1 + 0.1 * next())
        }
    })
  },
  {
    fault: "base of positions 10,000 instead of 100,000",
    row: "reference_agrees",
    spoils: "config.json",
    files: withJson("config.json", (fields) => ({ ...fields, rope_theta: 10_000 }))
  },
  {
    fault: "epsilon of norms 0.01",
    row: "reference_agrees",
    spoils: "config.json",
    files: withJson("config.json", (fields) => ({ ...fields, rms_norm_eps: 1e-2 }))
  },
  {
    fault: "two tokens have each other's IDs",
    row: "tokenizer_agrees",
    spoils: "tokenizer.json",
    files: withTokenizer(({ vocab }) => ({
      vocab: Object.fromEntries(Object.entries(decodeObject(vocab)).map(([piece, id]) => [piece, id === 260 ? 288 : id === 288 ? 260 : id]))
    }))
  },
  {
    fault: "half of the merges are missing",
    row: "tokenizer_agrees",
    spoils: "tokenizer.json",
    files: withTokenizer(({ merges }) => ({ merges: Array.isArray(merges) ? merges.slice(0, merges.length / 2) : merges }))
  },
  {
    fault: "digits are no tokens of their own",
    row: "tokenizer_agrees",
    spoils: "tokenizer.json",
    files: withJson("tokenizer.json", (fields) => ({
      ...fields,
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true }
    }))
  },
  {
    fault: "a template without the system turn",
    row: "template_agrees",
    spoils: "tokenizer_config.json",
    files: withJson("tokenizer_config.json", (fields) => ({ ...fields, chat_template: String(fields.chat_template).replace("loop.first and", "false and") }))
  }
]
