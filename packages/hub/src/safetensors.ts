import { Option, Result, Schema, Struct } from "effect"
import { parseJsonObject } from "./boundedJson.ts"
import { Unreadable } from "./failures.ts"

/** Longest header that is read, in bytes; the largest of real models are below 2 MB. */
export const maxHeaderBytes = 32 * 1024 * 1024

/** Bits of one element. */
const elementBits = {
  F64: 64,
  I64: 64,
  U64: 64,
  C64: 64,
  F32: 32,
  I32: 32,
  U32: 32,
  F16: 16,
  BF16: 16,
  I16: 16,
  U16: 16,
  F8_E4M3: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2: 8,
  F8_E5M2FNUZ: 8,
  F8_E8M0: 8,
  I8: 8,
  U8: 8,
  BOOL: 8,
  F6_E3M2: 6,
  F6_E2M3: 6,
  F4: 4
} as const

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Tensor = Schema.Struct({
  dtype: Schema.Literals(Struct.keys(elementBits)),
  shape: Schema.Array(Count).check(Schema.isMaxLength(16)),
  data_offsets: Schema.Tuple([Count, Count])
})
export type Tensor = typeof Tensor.Type
const decodeTensor = Schema.decodeUnknownOption(Tensor)
const decodeMetadata = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.String))

const tensorName = /^[\x21-\x7e]{1,512}$/

/**
 * Length of the JSON header that follows a safetensors file's first eight bytes.
 * Fails where it is not credible for a file of `size` bytes; `file` is for the message.
 */
export const headerLength = (first: Uint8Array, size: number, file: string): Result.Result<number, Unreadable> => {
  if (first.length < 8 || size < 10) return Result.fail(new Unreadable({ reason: `${file} is too short to be a safetensors file.` }))
  const length = new DataView(first.buffer, first.byteOffset, 8).getBigUint64(0, true)
  if (length < 2n || length + 8n > BigInt(size)) return Result.fail(new Unreadable({ reason: `${file} states a header that does not lie within the file.` }))
  if (length > BigInt(maxHeaderBytes)) return Result.fail(new Unreadable({ reason: `${file} states a header of more than ${maxHeaderBytes} bytes.` }))
  return Result.succeed(Number(length))
}

/**
 * The tensors of a safetensors header, where they lie one after the other, without gap or overlap, from the header's end to the file's end,
 * each as long as its shape and type say. `dataBytes` is what the file holds behind the header.
 */
export const parseHeader = (header: Uint8Array, dataBytes: number, file: string): Result.Result<ReadonlyMap<string, Tensor>, Unreadable> => {
  const fail = (what: string) => Result.fail(new Unreadable({ reason: `${file} ${what}.` }))
  if (header[0] !== 0x7b) return fail("has a header that is not a JSON object")
  const parsed = parseJsonObject(header, `The header of ${file}`)
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const tensors = new Map<string, Tensor>()
  for (const [name, value] of Object.entries(parsed.success)) {
    if (name === "__metadata__") {
      if (Option.isNone(decodeMetadata(value))) return fail("has malformed metadata")
      continue
    }
    if (!tensorName.test(name) || name === "__proto__") return fail("names a tensor in characters that no engine takes")
    const tensor = decodeTensor(value)
    if (Option.isNone(tensor)) return fail(`describes the tensor ${name.slice(0, 80)} in a way that no engine takes`)
    const { data_offsets, dtype, shape } = tensor.value
    const bits = shape.reduce((product, side) => product * BigInt(side), 1n) * BigInt(elementBits[dtype])
    if (bits !== BigInt(data_offsets[1] - data_offsets[0]) * 8n) return fail(`gives the tensor ${name.slice(0, 80)} another length than its shape`)
    tensors.set(name, tensor.value)
  }
  let end = 0
  for (const { data_offsets } of [...tensors.values()].sort((a, b) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1])) {
    if (data_offsets[0] !== end) return fail(data_offsets[0] < end ? "has tensors that overlap" : "has gaps between its tensors")
    end = data_offsets[1]
  }
  if (end !== dataBytes) return fail("is not as long as its tensors")
  return Result.succeed(tensors)
}

const Index = Schema.Struct({ weight_map: Schema.Record(Schema.String, Schema.String) })
const decodeIndex = Schema.decodeUnknownOption(Index)

/** The tensors that an index (`model.safetensors.index.json`) places in each file. Fails where a file is not among `listed`. */
export const parseIndex = (
  bytes: Uint8Array,
  name: string,
  listed: ReadonlySet<string>
): Result.Result<ReadonlyMap<string, ReadonlySet<string>>, Unreadable> => {
  const parsed = parseJsonObject(bytes, name)
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const index = decodeIndex(parsed.success)
  if (Option.isNone(index)) return Result.fail(new Unreadable({ reason: `${name} has no map from tensors to files.` }))
  const files = new Map<string, Set<string>>()
  for (const [tensor, file] of Object.entries(index.value.weight_map)) {
    if (!listed.has(file)) return Result.fail(new Unreadable({ reason: `${name} names files that the repository does not have.` }))
    const tensors = files.get(file)
    if (tensors === undefined) files.set(file, new Set([tensor]))
    else tensors.add(tensor)
  }
  if (files.size === 0) return Result.fail(new Unreadable({ reason: `${name} names no tensor.` }))
  return Result.succeed(files)
}

/** The tensors of all files together. Fails where one is in two files, or not where the index says. */
export const joinShards = (
  shards: ReadonlyMap<string, ReadonlyMap<string, Tensor>>,
  index: ReadonlyMap<string, ReadonlySet<string>> | null
): Result.Result<ReadonlyMap<string, Tensor>, Unreadable> => {
  const all = new Map<string, Tensor>()
  for (const [file, tensors] of shards) {
    for (const [name, tensor] of tensors) {
      if (all.has(name)) return Result.fail(new Unreadable({ reason: `The tensor ${name.slice(0, 80)} is in two files.` }))
      all.set(name, tensor)
    }
    for (const name of index?.get(file) ?? []) {
      if (!tensors.has(name))
        return Result.fail(new Unreadable({ reason: `The index places the tensor ${name.slice(0, 80)} in ${file}, which does not hold it.` }))
    }
  }
  if (all.size === 0) return Result.fail(new Unreadable({ reason: "The repository's safetensors files hold no tensor." }))
  return Result.succeed(all)
}

/** Sum of the tensors' lengths, in bytes. */
export const tensorBytes = (tensors: Iterable<Tensor>): number => {
  let bytes = 0
  for (const { data_offsets } of tensors) bytes += data_offsets[1] - data_offsets[0]
  return bytes
}
