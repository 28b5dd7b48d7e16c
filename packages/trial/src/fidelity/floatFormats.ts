/** A format of stored weights with one value per word. */
export interface FloatFormat {
  readonly bytes: 2 | 4
  /** The value of a word. */
  readonly decode: (bits: number) => number
  /** The word nearest to a value, ties to even. */
  readonly encode: (value: number) => number
  /** Maps words to integers in the order of their values: neighbors differ by one. Both zeros are equal. */
  readonly order: (bits: number) => number
}

const float = new Float32Array(1)
const word = new Uint32Array(float.buffer)

const floatOf = (bits: number): number => {
  word[0] = bits
  return float[0] ?? 0
}

const ordered = (signBit: number) => (bits: number) => (bits >= signBit ? signBit - bits : bits)

/**
 * The value of the last place of a half-precision number, by exponent from -14 to 15. Smaller numbers use the least
 * exponent.
 */
const halfUnits = Float64Array.from({ length: 30 }, (_, at) => 2 ** (at - 24))

const double = new Float64Array(1)
const doubleWords = new Uint32Array(double.buffer)

/**
 * The index of a magnitude's unit in `halfUnits`, from its own exponent. A search or a logarithm per value would take
 * hours for large models.
 */
const halfUnitAt = (magnitude: number): number => {
  double[0] = magnitude
  return Math.max(0, ((doubleWords[1] ?? 0) >>> 20) - 1_009)
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
    const unit = halfUnits[Math.max(0, exponent - 1)] ?? 0
    const magnitude = exponent === 31 ? (fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN) : (exponent === 0 ? fraction : 1_024 + fraction) * unit
    return bits >= 0x8000 ? -magnitude : magnitude
  },
  encode: (value) => {
    const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
    const magnitude = Math.abs(value)
    if (Number.isNaN(value)) return 0x7e00
    if (magnitude >= 65_520) return sign | 0x7c00
    const at = halfUnitAt(magnitude)
    // Rounding up may carry into the exponent, which continues the count of words.
    return sign | (at * 1_024 + roundedToEven(magnitude / (halfUnits[at] ?? 1)))
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

/** The safetensors formats in which weights can be merged, by name. Quantized formats are not supported. */
export const floatFormats: ReadonlyMap<string, FloatFormat> = new Map([
  ["BF16", brain],
  ["F16", half],
  ["F32", single]
])
