import { type FileHandle, open } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { type LowRankPair, openAdapter } from "./adapterPairs.ts"
import { copyModelFiles } from "./copyModelFiles.ts"
import { type FloatFormat, floatFormats } from "./floatFormats.ts"
import { NotMergeable } from "./NotMergeable.ts"
import type { MergedAgreement } from "./rules.ts"
import { openTensors, type StoredTensor } from "./TensorFolder.ts"

/**
 * Number of values processed at a time, in addition to one pair of an adapter. The memory of a merge does not grow with
 * the model.
 */
const pieceValues = 2 ** 20

const wordsOf = (bytes: Uint8Array<ArrayBuffer>, format: FloatFormat) => (format.bytes === 2 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer))

/** Some rows of a weight: the first row and their bytes. */
interface Rows {
  readonly first: number
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** Processes a weight in blocks of whole rows. */
const byRows = (tensor: StoredTensor, format: FloatFormat, each: (rows: Rows) => Promise<void>) =>
  Effect.promise(async () => {
    const [output = 0, input = 0] = tensor.shape
    const step = Math.max(1, Math.floor(pieceValues / Math.max(1, input)))
    for (let first = 0; first < output; first += step) {
      const last = Math.min(output, first + step)
      await each({ first, bytes: await tensor.read(first * input * format.bytes, last * input * format.bytes) })
    }
  })

/** The format of a weight that the pair changes. Fails if the pair does not fit the weight. */
const formatFor = ({ dtype, name, shape }: StoredTensor, pair: LowRankPair) => {
  const format = floatFormats.get(dtype)
  const fits = shape.length === 2 && shape[0] === pair.output && shape[1] === pair.input
  if (format !== undefined && fits) return Effect.succeed(format)
  return Effect.fail(
    new NotMergeable({
      message:
        format === undefined
          ? `The base's weights have the type ${dtype}. Seatrial cannot merge an adapter into this type.`
          : `The adapter's pair does not have the shape of ${name.slice(0, 120)}.`
    })
  )
}

const exact = (value: number) => value

/** Computes one row of B A. Each step is rounded by `round`. */
const productRow = (sum: Float32Array | Float64Array, { a, b, input, rank }: LowRankPair, row: number, round: (value: number) => number): void => {
  sum.fill(0)
  for (let k = 0; k < rank; k++) {
    const factor = b[row * rank + k] ?? 0
    for (let i = 0; i < input; i++) sum[i] = (sum[i] ?? 0) + round(factor * (a[k * input + i] ?? 0))
  }
}

/**
 * Adds a pair to rows and rounds each value once to the type of the weight. Uses single precision, as libraries do, and
 * double precision if the weight itself has single precision, whose last place a single-precision sum would miss.
 */
const addTo = ({ bytes, first }: Rows, format: FloatFormat, pair: LowRankPair): void => {
  const { input, scale } = pair
  const words = wordsOf(bytes, format)
  const own = format.bytes === 4
  const sum = own ? new Float64Array(input) : new Float32Array(input)
  const round = own ? exact : Math.fround
  for (let row = 0; row * input < words.length; row++) {
    productRow(sum, pair, first + row, round)
    for (let i = 0; i < input; i++) {
      const at = row * input + i
      words[at] = format.encode(round(format.decode(words[at] ?? 0) + round(scale * (sum[i] ?? 0))))
    }
  }
}

const writeAll = async (file: FileHandle, bytes: Uint8Array): Promise<void> => {
  for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done)).bytesWritten
}

/** Copies a tensor in pieces. */
const copy = async (tensor: StoredTensor, file: FileHandle): Promise<void> => {
  const step = 4 * pieceValues
  for (let from = 0; from < tensor.bytes; from += step) await writeAll(file, await tensor.read(from, Math.min(tensor.bytes, from + step)))
}

/**
 * Writes the weights of `base` with the adapter merged into them, round(W + s B A), into the new folder `target`,
 * together with the other files of the model. Files and headers come from the base. Processes one tensor at a time,
 * in a few megabytes of memory and one pair. Fails with `NotMergeable` if the adapter does not fit these weights.
 */
export const mergeWeights = Effect.fn("mergeWeights")(
  function* (options: { readonly base: string; readonly adapter: string; readonly target: string }) {
    const base = yield* openTensors(options.base)
    const adapter = yield* openAdapter(options.adapter)
    const stray = [...adapter.weights].find((name) => !base.byName.has(name))
    if (stray !== undefined) return yield* new NotMergeable({ message: `The adapter has a pair for ${stray.slice(0, 120)}, which the base does not have.` })
    yield* copyModelFiles(options)
    for (const { head, name, tensors } of base.files) {
      const file = yield* Effect.acquireRelease(
        Effect.promise(() => open(join(options.target, name), "wx")),
        (handle) => Effect.promise(() => handle.close())
      )
      yield* Effect.promise(() => writeAll(file, head))
      for (const tensor of tensors) {
        if (!adapter.weights.has(tensor.name)) {
          yield* Effect.promise(() => copy(tensor, file))
          continue
        }
        const pair = yield* adapter.read(tensor.name)
        const format = yield* formatFor(tensor, pair)
        yield* byRows(tensor, format, async (rows) => {
          addTo(rows, format, pair)
          await writeAll(file, rows.bytes)
        })
      }
    }
  },
  (effect) => Effect.scoped(effect)
)

/** Counts the values of the rows within one unit in the last place of the values computed here, in double precision. */
const within = (base: Rows, child: Uint8Array<ArrayBuffer>, format: FloatFormat, pair: LowRankPair): number => {
  const { input, scale } = pair
  const words = wordsOf(base.bytes, format)
  const childWords = wordsOf(child, format)
  const sum = new Float64Array(input)
  let count = 0
  for (let row = 0; row * input < words.length; row++) {
    productRow(sum, pair, base.first + row, exact)
    for (let i = 0; i < input; i++) {
      const at = row * input + i
      const expected = format.encode(format.decode(words[at] ?? 0) + scale * (sum[i] ?? 0))
      if (Math.abs(format.order(expected) - format.order(childWords[at] ?? 0)) <= 1) count++
    }
  }
  return count
}

const same = async (a: StoredTensor, b: StoredTensor): Promise<boolean> => {
  if (a.dtype !== b.dtype || a.bytes !== b.bytes || a.shape.join() !== b.shape.join()) return false
  const step = 4 * pieceValues
  for (let from = 0; from < a.bytes; from += step) {
    const to = Math.min(a.bytes, from + step)
    const [left, right] = await Promise.all([a.read(from, to), b.read(from, to)])
    if (Buffer.compare(left, right) !== 0) return false
  }
  return true
}

/**
 * Compares the weights of a child with base and adapter by a second computation, in double precision and value by
 * value. A weight that the child lacks, or that has another shape or type there, has no agreement.
 */
export const mergedAgreement = Effect.fn("mergedAgreement")(
  function* (options: { readonly base: string; readonly adapter: string; readonly child: string }) {
    const base = yield* openTensors(options.base)
    const child = yield* openTensors(options.child)
    const adapter = yield* openAdapter(options.adapter)
    let withinUlpMin = 1
    let othersEqual = child.byName.size === base.byName.size
    for (const [name, tensor] of base.byName) {
      const merged = child.byName.get(name)
      if (!adapter.weights.has(name)) {
        othersEqual = othersEqual && merged !== undefined && (yield* Effect.promise(() => same(tensor, merged)))
        continue
      }
      const pair = yield* adapter.read(name)
      const format = yield* formatFor(tensor, pair)
      if (merged === undefined || merged.dtype !== tensor.dtype || merged.shape.join() !== tensor.shape.join()) {
        withinUlpMin = 0
        continue
      }
      let count = 0
      yield* byRows(tensor, format, async (rows) => {
        const from = rows.first * pair.input * format.bytes
        count += within(rows, await merged.read(from, from + rows.bytes.length), format, pair)
      })
      withinUlpMin = Math.min(withinUlpMin, count / Math.max(1, pair.input * pair.output))
    }
    const agreement: MergedAgreement = { withinUlpMin, othersEqual }
    return agreement
  },
  (effect) => Effect.scoped(effect)
)
