import { computeNumOfParamsByDtypeSingleFile } from "@huggingface/hub"
import { Option, Schema } from "effect"
import { type TensorType, tensorTypes } from "./safetensors.ts"
import type { TensorGroup } from "./TensorGroups.ts"

/** The part of `quantization_config` that the count depends on. */
const Quantization = Schema.Struct({
  quant_method: Schema.optionalKey(Schema.String),
  bits: Schema.optionalKey(Schema.Finite),
  load_in_4bit: Schema.optionalKey(Schema.Boolean),
  format: Schema.optionalKey(Schema.String),
  modules_to_not_convert: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
  ignore: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String)))
})
const decodeQuantization = Schema.decodeUnknownOption(Quantization)
const isTensorType = Schema.is(Schema.Literals(tensorTypes))

/** Parameters, with the values that quantized formats pack into one element counted apart. */
export const countParameters = (groups: ReadonlyArray<TensorGroup>, config: Readonly<Record<PropertyKey, unknown>>): number => {
  const header: Record<string, { dtype: TensorType; shape: Array<number>; data_offsets: [number, number] }> = {}
  // A group counts as one tensor that is as much larger.
  for (const { count, dtype, name, shape } of groups) if (isTensorType(dtype)) header[name] = { dtype, shape: [count, ...shape], data_offsets: [0, 0] }
  const counts = computeNumOfParamsByDtypeSingleFile(header, Option.getOrUndefined(decodeQuantization(config.quantization_config)))
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

/** The type that holds most bytes. */
export const dominantType = (groups: Iterable<TensorGroup>): string => {
  const bytes = new Map<string, number>()
  for (const group of groups) bytes.set(group.dtype, (bytes.get(group.dtype) ?? 0) + group.bytes)
  return [...bytes].reduce((best, next) => (next[1] > best[1] ? next : best), ["F32", 0])[0]
}
