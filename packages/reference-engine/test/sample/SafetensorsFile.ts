import { toBfloat16 } from "../../src/Tensor.ts"

/** One tensor to be written as bfloat16. */
export interface NamedTensor {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly values: Float32Array
}

/** The bytes of a safetensors file with these tensors in this order, as bfloat16. */
export const encodeSafetensors = (tensors: ReadonlyArray<NamedTensor>): Uint8Array => {
  let end = 0
  const entries = tensors.map(({ name, shape, values }) => {
    const start = end
    end += values.length * 2
    return [name, { dtype: "BF16", shape, data_offsets: [start, end] }]
  })
  const json = JSON.stringify(Object.fromEntries([["__metadata__", { format: "pt" }], ...entries]))
  const header = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8, " "), "utf8")
  const bytes = new Uint8Array(8 + header.length + end)
  const view = new DataView(bytes.buffer)
  view.setBigUint64(0, BigInt(header.length), true)
  bytes.set(header, 8)
  let at = 8 + header.length
  for (const { values } of tensors) {
    for (const value of values) {
      view.setUint16(at, toBfloat16(value), true)
      at += 2
    }
  }
  return bytes
}
