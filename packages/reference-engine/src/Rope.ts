import type { RopeConfig } from "@seatrial/engines/reference"

/**
 * The angle per position of each pair of dimensions, in radians, with llama3 and YaRN scaling as in Hugging Face's
 * reference code.
 */
export const ropeFrequencies = (rope: RopeConfig, headDim: number): Float64Array => {
  const frequencies = Float64Array.from({ length: headDim / 2 }, (_, pair) => rope.theta ** ((-2 * pair) / headDim))
  const { scaling } = rope
  if (scaling.kind === "none") return frequencies
  if (scaling.kind === "linear") return frequencies.map((frequency) => frequency / scaling.factor)
  if (scaling.kind === "yarn") {
    // The dimension that makes this many turns within the original length.
    const dimension = (turns: number) => (headDim * Math.log(scaling.originalLength / (turns * 2 * Math.PI))) / (2 * Math.log(rope.theta))
    const [fast, slow] = [dimension(scaling.betaFast), dimension(scaling.betaSlow)]
    const low = Math.max(0, scaling.truncated ? Math.floor(fast) : fast)
    const high = Math.min(headDim - 1, scaling.truncated ? Math.ceil(slow) : slow)
    const width = high === low ? 0.001 : high - low
    return frequencies.map((frequency, pair) => {
      const stretched = Math.min(1, Math.max(0, (pair - low) / width))
      return (frequency / scaling.factor) * stretched + frequency * (1 - stretched)
    })
  }
  return frequencies.map((frequency) => {
    const wavelength = (2 * Math.PI) / frequency
    if (wavelength < scaling.originalLength / scaling.highFrequency) return frequency
    if (wavelength > scaling.originalLength / scaling.lowFrequency) return frequency / scaling.factor
    const smooth = (scaling.originalLength / wavelength - scaling.lowFrequency) / (scaling.highFrequency - scaling.lowFrequency)
    return ((1 - smooth) * frequency) / scaling.factor + smooth * frequency
  })
}

/** The factor for cosines and sines. YaRN uses it to compensate for flatter attention in longer contexts. */
export const ropeAttention = ({ scaling }: RopeConfig): number => (scaling.kind === "yarn" ? scaling.attention : 1)

/**
 * Rotates every head of `x` in place by the angles of its position. Dimension i is paired with i + half, as in Llama
 * checkpoints.
 */
export const rotate = (x: Float32Array, headDim: number, cosines: Float32Array, sines: Float32Array) => {
  const half = headDim / 2
  for (let base = 0; base < x.length; base += headDim) {
    for (let i = 0; i < half; i++) {
      const low = x[base + i] ?? 0
      const high = x[base + half + i] ?? 0
      const cosine = cosines[i] ?? 0
      const sine = sines[i] ?? 0
      x[base + i] = low * cosine - high * sine
      x[base + half + i] = high * cosine + low * sine
    }
  }
}
