import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from "node:fs"
import { join } from "node:path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { BootFailure } from "./BootFailure.ts"
import { bfloat16Table, float16Table, type Tensor } from "./Tensor.ts"

const Entry = Schema.Struct({
  dtype: Schema.String,
  shape: Schema.Array(Schema.Int),
  data_offsets: Schema.Tuple([Schema.Int, Schema.Int])
})
const Header = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const Index = Schema.fromJsonString(Schema.Struct({ weight_map: Schema.Record(Schema.String, Schema.String) }))

interface Located {
  readonly file: string
  readonly dtype: string
  readonly shape: ReadonlyArray<number>
  readonly position: number
  readonly length: number
}

const widths: Readonly<Record<string, number>> = { F32: 4, BF16: 2, F16: 2 }
const maxHeaderBytes = 100_000_000

const readExactly = (descriptor: number, target: Uint8Array, position: number, file: string) => {
  let done = 0
  while (done < target.length) {
    const got = readSync(descriptor, target, done, Math.min(target.length - done, 1 << 30), position + done)
    if (got === 0) throw new BootFailure(`Cannot read ${file}: it ends before its last tensor`)
    done += got
  }
}

/** The members of the header of an open file, and the position after it. */
const readMembers = (descriptor: number, file: string, size: number) => {
  const prefix = new Uint8Array(8)
  if (size < 8) throw new BootFailure(`Cannot read ${file}: not a safetensors file`)
  readExactly(descriptor, prefix, 0, file)
  const headerLength = Number(new DataView(prefix.buffer).getBigUint64(0, true))
  if (headerLength > maxHeaderBytes || 8 + headerLength > size) throw new BootFailure(`Cannot read ${file}: not a safetensors file`)
  const bytes = new Uint8Array(headerLength)
  readExactly(descriptor, bytes, 8, file)
  const header = Schema.decodeUnknownResult(Header)(new TextDecoder().decode(bytes))
  if (Result.isFailure(header)) throw new BootFailure(`Cannot read ${file}: its header is not JSON`)
  return { members: Object.entries(header.success).filter(([name]) => name !== "__metadata__"), start: 8 + headerLength }
}

/** The place of a tensor, whose size must match its shape and type. `start`: the position of the first tensor. */
const locate = (file: string, name: string, raw: unknown, start: number): Located => {
  const entry = Schema.decodeUnknownResult(Entry)(raw)
  if (Result.isFailure(entry)) throw new BootFailure(`Cannot read ${file}: the header of ${name} is malformed`)
  const { data_offsets, dtype, shape } = entry.success
  const [from, to] = data_offsets
  const width = widths[dtype]
  if (from < 0 || to < from || (width !== undefined && shape.reduce((product, side) => product * side, width) !== to - from)) {
    throw new BootFailure(`Cannot read ${file}: ${name} has shape [${shape.join(", ")}] of ${dtype} but ${to - from} bytes`)
  }
  return { file, dtype, shape, position: start + from, length: to - from }
}

const readHeader = (directory: string, file: string): Map<string, Located> => {
  const descriptor = openSync(join(directory, file), "r")
  try {
    const size = fstatSync(descriptor).size
    const { members, start } = readMembers(descriptor, file, size)
    const tensors = new Map(members.map(([name, raw]) => [name, locate(file, name, raw, start)]))
    let end = start
    for (const { length, position } of tensors.values()) end = Math.max(end, position + length)
    if (end !== size) throw new BootFailure(`Cannot read ${file}: ${size} bytes, but its header describes ${end}`)
    return tensors
  } finally {
    closeSync(descriptor)
  }
}

/** The tensors of a checkpoint directory. Headers are read and checked immediately, values on demand. */
export class Safetensors {
  private readonly directory: string
  private readonly tensors = new Map<string, Located>()

  /**
   * Throws `BootFailure` if there are no weights, a shard of the index is missing, or a header does not match its file.
   */
  constructor(directory: string) {
    this.directory = directory
    for (const file of this.files()) {
      for (const [name, located] of readHeader(directory, file)) {
        if (this.tensors.has(name)) throw new BootFailure(`Tensor ${name} is in ${this.tensors.get(name)?.file} and in ${file}`)
        this.tensors.set(name, located)
      }
    }
  }

  private files(): ReadonlyArray<string> {
    const index = join(this.directory, "model.safetensors.index.json")
    if (!existsSync(index)) {
      const names = readdirSync(this.directory).filter((file) => file.endsWith(".safetensors"))
      if (names.length === 0) throw new BootFailure(`Cannot find any model weights with \`${this.directory}\``)
      return names.sort()
    }
    const decoded = Schema.decodeUnknownResult(Index)(readFileSync(index, "utf8"))
    if (Result.isFailure(decoded)) throw new BootFailure("Cannot read model.safetensors.index.json")
    const files = [...new Set(Object.values(decoded.success.weight_map))].sort()
    for (const file of files) {
      if (file.includes("/") || !existsSync(join(this.directory, file)))
        throw new BootFailure(`Cannot find any model weights with \`${file}\`, which the index names`)
    }
    return files
  }

  names(): Iterable<string> {
    return this.tensors.keys()
  }

  has(name: string): boolean {
    return this.tensors.has(name)
  }

  /** Bytes of the named tensors, in the file and in memory. */
  bytes(names: Iterable<string>): number {
    let sum = 0
    for (const name of names) sum += this.tensors.get(name)?.length ?? 0
    return sum
  }

  /** Reads one tensor. Throws `BootFailure` if it is missing or has an unexpected shape or an unsupported type. */
  read(name: string, shape: ReadonlyArray<number>): Tensor {
    const located = this.tensors.get(name)
    if (located === undefined) throw new BootFailure(`Following weights were not initialized from checkpoint: ${name}`)
    if (located.shape.length !== shape.length || located.shape.some((side, i) => side !== shape[i])) {
      throw new BootFailure(`Tensor ${name} has shape [${located.shape.join(", ")}], but config.json asks for [${shape.join(", ")}]`)
    }
    if (widths[located.dtype] === undefined) throw new BootFailure(`Tensor ${name} is of type ${located.dtype}; only F32, BF16 and F16 are supported`)
    const bytes = new Uint8Array(located.length)
    const descriptor = openSync(join(this.directory, located.file), "r")
    try {
      readExactly(descriptor, bytes, located.position, located.file)
    } finally {
      closeSync(descriptor)
    }
    if (located.dtype === "F32") return { type: "float32", shape, values: new Float32Array(bytes.buffer) }
    const bits = new Uint16Array(bytes.buffer)
    return located.dtype === "BF16" ? { type: "bfloat16", shape, bits, table: bfloat16Table() } : { type: "float16", shape, bits, table: float16Table() }
  }
}
