import { type FileHandle, open, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { NotMergeable } from "./NotMergeable.ts"

const Entry = Schema.Struct({ dtype: Schema.String, shape: Schema.Array(Schema.Int), data_offsets: Schema.Tuple([Schema.Int, Schema.Int]) })
const headerOf = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))
const entryOf = Schema.decodeUnknownOption(Entry)
const maxHeaderBytes = 64 * 2 ** 20

/** A tensor, its position in the file, and a reader for its bytes. */
export interface StoredTensor {
  readonly name: string
  readonly dtype: string
  readonly shape: ReadonlyArray<number>
  readonly bytes: number
  readonly file: string
  /** Reads bytes of the tensor from `from` to `to`. */
  readonly read: (from: number, to: number) => Promise<Uint8Array<ArrayBuffer>>
}

const readAt = async (file: FileHandle, position: number, length: number): Promise<Uint8Array<ArrayBuffer>> => {
  const bytes = new Uint8Array(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) throw new Error("the file ends early")
    done += bytesRead
  }
  return bytes
}

/** The head of a weight file, and its tensors in the order of their bytes. */
export interface TensorFile {
  readonly name: string
  /** The length and the header, as they precede the tensors. */
  readonly head: Uint8Array
  readonly tensors: ReadonlyArray<StoredTensor>
}

const fault = (name: string) => new NotMergeable({ message: `${name} is not a safetensors file.` })

const openFile = Effect.fnUntraced(function* (folder: string, name: string) {
  const file = yield* Effect.acquireRelease(Effect.tryPromise({ try: () => open(join(folder, name)), catch: () => fault(name) }), (handle) =>
    Effect.promise(() => handle.close())
  )
  const read = (position: number, length: number) => Effect.tryPromise({ try: () => readAt(file, position, length), catch: () => fault(name) })
  const prefix = yield* read(0, 8)
  const length = Number(new DataView(prefix.buffer).getBigUint64(0, true))
  if (length > maxHeaderBytes) return yield* fault(name)
  const head = yield* read(0, 8 + length)
  const header = headerOf(new TextDecoder().decode(head.subarray(8)))
  if (Option.isNone(header)) return yield* fault(name)
  const tensors: Array<StoredTensor & { readonly start: number }> = []
  for (const [tensor, described] of Object.entries(header.value)) {
    if (tensor === "__metadata__") continue
    const entry = entryOf(described)
    if (Option.isNone(entry)) return yield* fault(name)
    const { data_offsets, dtype, shape } = entry.value
    const start = 8 + length + data_offsets[0]
    tensors.push({
      name: tensor,
      dtype,
      shape,
      file: name,
      start,
      bytes: data_offsets[1] - data_offsets[0],
      read: (from, to) => readAt(file, start + from, to - from)
    })
  }
  const opened: TensorFile = { name, head, tensors: tensors.sort((a, b) => a.start - b.start) }
  return opened
})

/**
 * Opens the weight files of a folder for the lifetime of the scope. Only their headers are in memory. Fails if a file
 * is invalid.
 */
export const openTensors = Effect.fnUntraced(function* (folder: string) {
  const names = yield* Effect.tryPromise({
    try: () => readdir(folder),
    catch: () => new NotMergeable({ message: "The folder with the weights does not exist or cannot be read." })
  })
  const files = yield* Effect.forEach(names.filter((name) => name.endsWith(".safetensors")).sort(), (name) => openFile(folder, name))
  if (files.length === 0) return yield* new NotMergeable({ message: "The folder has no safetensors files." })
  const byName = new Map(files.flatMap(({ tensors }) => tensors.map((tensor) => [tensor.name, tensor])))
  return { files, byName }
})
