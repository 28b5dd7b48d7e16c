import {
  accumulated,
  addedFloat64,
  assigned,
  compile,
  counted,
  f64,
  firstTwo,
  get,
  i32,
  increased,
  isBelow,
  isGreater,
  laneOf,
  lastTwo,
  loaded,
  loadedTwice,
  loop,
  lowestFloat64,
  multipliedFloat64,
  page,
  selected,
  set,
  stored,
  storedFloat64,
  v128,
  type WasmMemory,
  zeroed
} from "./wasm.ts"

interface Exports {
  readonly memory: WasmMemory
  readonly score: (keys: number, scores: number, positions: number, stride: number, last: number, scale: number) => number
  readonly mix: (values: number, weights: number, positions: number, stride: number, mixed: number, last: number) => void
}

/** Returns the highest score. The query is at address 0. */
const score = () => {
  const [keys, scores, positions, stride, last, scale, x, key, sum, four, value, highest] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
  return [
    ...[...lowestFloat64, ...set(highest)],
    ...loop([
      ...[...assigned(x, 0), ...get(keys), ...set(key), ...zeroed(sum)],
      ...loop([
        ...[...get(key), ...loaded(), ...set(four)],
        ...accumulated(sum, firstTwo(four), [...get(x), ...loaded()]),
        ...accumulated(sum, lastTwo(four), [...get(x), ...loaded(16)]),
        ...[...increased(key, 16), ...increased(x, 32), ...isBelow(x, last)]
      ]),
      ...[...laneOf(sum, 0), ...laneOf(sum, 1), ...addedFloat64, ...get(scale), ...multipliedFloat64, ...set(value)],
      ...[...get(scores), ...get(value), ...storedFloat64],
      ...[...get(value), ...get(highest), ...get(value), ...get(highest), ...isGreater, ...selected, ...set(highest)],
      ...[...increased(keys, get(stride)), ...increased(scores, 8), ...counted(positions)]
    ]),
    ...get(highest)
  ]
}

/** Writes the weighted sum of the values from address `mixed` to `last`. */
const mix = () => {
  const [values, weights, positions, stride, mixed, last, value, weight, left, low, high, four, factor] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
  return loop([
    ...[...get(values), ...set(value), ...get(weights), ...set(weight), ...get(positions), ...set(left), ...zeroed(low), ...zeroed(high)],
    ...loop([
      ...[...get(weight), ...loadedTwice, ...set(factor), ...get(value), ...loaded(), ...set(four)],
      ...accumulated(low, firstTwo(four), get(factor)),
      ...accumulated(high, lastTwo(four), get(factor)),
      ...[...increased(value, get(stride)), ...increased(weight, 8), ...counted(left)]
    ]),
    ...[...get(mixed), ...get(low), ...stored(), ...get(mixed), ...get(high), ...stored(16)],
    ...[...increased(values, 16), ...increased(mixed, 32), ...isBelow(mixed, last)]
  ])
}

const makeKernel = compile<Exports>(1, [
  {
    name: "score",
    parameters: [i32, i32, i32, i32, i32, f64],
    result: [f64],
    locals: [
      [2, i32],
      [2, v128],
      [2, f64]
    ],
    body: score()
  },
  {
    name: "mix",
    parameters: [i32, i32, i32, i32, i32, i32],
    result: [],
    locals: [
      [3, i32],
      [4, v128]
    ],
    body: mix()
  }
])

/** Bytes that a kernel can address. */
const maxBytes = 2 ** 31

/**
 * Attention of one head with vectors, in float64, with the same bits as `Attention` without it. The buffers are in the
 * memory of the kernel.
 */
export interface AttentionKernel {
  /** The query of a head. */
  readonly query: Float64Array
  /** The weighted sum of the values. */
  readonly mixed: Float64Array
  readonly scores: Float64Array
  readonly keys: Float32Array
  readonly values: Float32Array
  /** Writes the scores of the positions, and returns the highest. `base`: the place of the head in a position. */
  readonly score: (base: number, from: number, count: number, scale: number) => number
  readonly mix: (base: number, from: number, count: number) => void
}

/** Null if this machine or these sizes are not supported. `width`: keys of one position. */
export const makeAttentionKernel = (headDim: number, width: number, maxLength: number): AttentionKernel | null => {
  const mixedAt = headDim * 8
  const scoresAt = 2 * mixedAt
  const keysAt = scoresAt + maxLength * 8
  const valuesAt = keysAt + maxLength * width * 4
  const bytes = valuesAt + maxLength * width * 4
  if (makeKernel === null || headDim % 4 !== 0 || bytes >= maxBytes) return null
  const { memory, mix, score } = makeKernel()
  memory.grow(Math.ceil(bytes / page))
  const { buffer } = memory
  const stride = width * 4
  return {
    query: new Float64Array(buffer, 0, headDim),
    mixed: new Float64Array(buffer, mixedAt, headDim),
    scores: new Float64Array(buffer, scoresAt, maxLength),
    keys: new Float32Array(buffer, keysAt, maxLength * width),
    values: new Float32Array(buffer, valuesAt, maxLength * width),
    score: (base, from, count, scale) => score(keysAt + from * stride + base * 4, scoresAt + from * 8, count - from, stride, headDim * 8, scale),
    mix: (base, from, count) => mix(valuesAt + from * stride + base * 4, scoresAt + from * 8, count - from, stride, mixedAt, scoresAt)
  }
}
