import type { Seams } from "../../src/Seams.ts"
import { type Tensor, toBfloat16, toFloat32 } from "../../src/Tensor.ts"
import type { Mutants } from "./Mutant.ts"
import { toFloat8 } from "./toFloat8.ts"

/** Changes the values of a tensor in its own type. */
const changed = (tensor: Tensor, change: (values: Float32Array) => void): Tensor => {
  const values = Float32Array.from(toFloat32(tensor))
  change(values)
  if (tensor.type !== "bfloat16") return { type: "float32", shape: tensor.shape, values }
  return { ...tensor, bits: Uint16Array.from(values, toBfloat16) }
}

/** Changes the values of each loaded matrix. */
const inMatrices = (change: (values: Float32Array) => void) => (): Seams => ({
  loaded: (_, tensor) => (tensor.shape.length === 1 ? tensor : changed(tensor, change))
})

/** The size of a head of the sample model. */
const headDim = 32

/** Exchanges two groups of so many rows, which begin at these rows, in a matrix of one layer. */
const swappedRows =
  (part: string, [first, second]: readonly [number, number], rows: number) =>
  (): Seams => ({
    loaded: (name, tensor) =>
      name.endsWith(`layers.${part}.weight`)
        ? changed(tensor, (values) => {
            const width = values.length / (tensor.shape[0] ?? 1)
            const firstRows = values.slice(first * width, (first + rows) * width)
            values.copyWithin(first * width, second * width, (second + rows) * width)
            values.set(firstRows, second * width)
          })
        : tensor
  })

/** Faults in loading: the files are those of the commit, but the loaded weights differ. */
export const loadedMutants: Mutants = {
  loaded_in_8_bits: {
    spoils: "loaded matrices are rounded to 8 bits",
    seams: inMatrices((values) => {
      for (let from = 0; from < values.length; from += 128) {
        const group = values.subarray(from, from + 128)
        const largest = group.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9)
        for (const [at, value] of group.entries()) group[at] = (Math.round((value / largest) * 127) / 127) * largest
      }
    })
  },
  loaded_in_fp8: {
    spoils: "loaded matrices are rounded to 8-bit floats (e4m3) with one scale for each",
    seams: inMatrices((values) => {
      const scale = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9) / 448
      for (const [at, value] of values.entries()) values[at] = toFloat8(value / scale, 3, -6) * scale
    })
  },
  loaded_norm_shifted: {
    spoils: "the last norm is loaded a hundredth too large",
    seams: () => ({
      loaded: (name, tensor) =>
        name === "model.norm.weight"
          ? changed(tensor, (values) => {
              for (const [at, value] of values.entries()) values[at] = value * 1.01
            })
          : tensor
    })
  },
  loaded_heads_swapped: {
    spoils: "two heads of Q in a middle layer are loaded in each other's place",
    seams: swappedRows("2.self_attn.q_proj", [0, 2 * headDim], headDim)
  },
  loaded_mlp_halved: {
    spoils: "the output of the last MLP is loaded at half its size",
    seams: () => ({
      loaded: (name, tensor) =>
        name.endsWith("layers.3.mlp.down_proj.weight")
          ? changed(tensor, (values) => {
              for (const [at, value] of values.entries()) values[at] = value / 2
            })
          : tensor
    })
  },
  loaded_channels_swapped: { spoils: "a tenth of the channels of an MLP are loaded in each other's place", seams: swappedRows("2.mlp.up_proj", [0, 128], 13) },
  loaded_otherwise_later: {
    spoils: "one value of a middle layer is loaded differently than before",
    seams: () => ({
      loaded: (name, tensor) =>
        name.endsWith("layers.2.mlp.up_proj.weight")
          ? changed(tensor, (values) => {
              values[values.length >> 1] = (values[values.length >> 1] ?? 0) + 0.0625
            })
          : tensor
    })
  }
}
