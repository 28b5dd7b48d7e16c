/** A format that weights are stored in, one value a word. */
export interface FloatFormat {
  readonly bytes: 2 | 4
  /** The value of a word. */
  readonly decode: (bits: number) => number
  /** The word nearest to a value, ties to the even one. */
  readonly encode: (value: number) => number
  /** Words in the order of their values, as whole numbers: neighbours differ by one. Both zeros are the same. */
  readonly order: (bits: number) => number
}

const float = new Float32Array(1)
const word = new Uint32Array(float.buffer)

const floatOf = (bits: number): number => {
  word[0] = bits
  return float[0] ?? 0
}

const ordered = (signBit: number) => (bits: number) => (bits >= signBit ? signBit - bits : bits)

/** The power of two that the last place of a half-precision value stands for. */
const halfUnit = (magnitude: number): number => {
  let exponent = -14
  while (exponent < 15 && magnitude >= 2 ** (exponent + 1)) exponent++
  return 2 ** (exponent - 10)
}

const roundedToEven = (value: number): number => {
  const below = Math.floor(value)
  const rest = value - below
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below
}

const half: FloatFormat = {
  bytes: 2,
  decode: (bits) => {
    const exponent = (bits >> 10) & 0x1f
    const fraction = bits & 0x3ff
    const magnitude =
      exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
          ? fraction === 0
            ? Number.POSITIVE_INFINITY
            : Number.NaN
          : (1 + fraction / 1024) * 2 ** (exponent - 15)
    return bits >= 0x8000 ? -magnitude : magnitude
  },
  encode: (value) => {
    const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
    const magnitude = Math.abs(value)
    if (Number.isNaN(value)) return 0x7e00
    if (magnitude >= 65_520) return sign | 0x7c00
    const unit = halfUnit(magnitude)
    const steps = roundedToEven(magnitude / unit)
    // Rounding up may carry into the exponent, which is where the word counts on.
    return sign | (magnitude < 2 ** -14 ? steps : (Math.round(Math.log2(unit)) + 24) * 1024 + steps)
  },
  order: ordered(0x8000)
}

const brain: FloatFormat = {
  bytes: 2,
  decode: (bits) => floatOf(bits * 0x10000),
  encode: (value) => {
    float[0] = value
    const bits = word[0] ?? 0
    if (Number.isNaN(value)) return 0x7fc0
    return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff
  },
  order: ordered(0x8000)
}

const single: FloatFormat = {
  bytes: 4,
  decode: floatOf,
  encode: (value) => {
    float[0] = value
    return word[0] ?? 0
  },
  order: ordered(0x80000000)
}

/** The formats of safetensors that weights are merged in, by their names there; quantized ones are not among them. */
export const floatFormats: ReadonlyMap<string, FloatFormat> = new Map([
  ["BF16", brain],
  ["F16", half],
  ["F32", single]
])
