import { computeNumOfParamsByDtypeSingleFile } from "@huggingface/hub"
import { Option, Predicate, Result, Schema } from "effect"
import { Unreadable } from "./failures.ts"
import { givenQuantization } from "./quantization.ts"
import { type TensorType, tensorTypes } from "./safetensors.ts"
import type { TensorGroup } from "./TensorGroups.ts"
import { textConfig } from "./textConfig.ts"

/** The part of `quantization_config` that the parameter count depends on. */
const Quantization = Schema.Struct({
  quant_method: Schema.optionalKey(Schema.String),
  bits: Schema.optionalKey(Schema.Finite),
  load_in_4bit: Schema.optionalKey(Schema.Boolean),
  format: Schema.optionalKey(Schema.String),
  modules_to_not_convert: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
  ignore: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
  expert_dtype: Schema.optionalKey(Schema.String),
  store_dtype: Schema.optionalKey(Schema.String),
  config_groups: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        format: Schema.optionalKey(Schema.String),
        targets: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
        weights: Schema.optionalKey(Schema.Struct({ num_bits: Schema.optionalKey(Schema.Finite) }))
      })
    )
  )
})

/**
 * A quantization without explicit nulls, and with the bits that ModelOpt's algorithm names imply: two 4-bit values per
 * U8.
 */
const plain = (raw: unknown): unknown => {
  if (!Predicate.isObject(raw)) return raw
  const own = Predicate.isObject(raw.quantization) ? raw.quantization : raw
  const packed = typeof own.quant_algo === "string" && own.quant_algo.includes("FP4")
  return { ...Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null)), ...(packed ? { bits: 4 } : {}) }
}
const decodeQuantization = Schema.decodeUnknownOption(Quantization)
const isTensorType = Schema.is(Schema.Literals(tensorTypes))

/**
 * Limit of the work to compare all tensors with all modules in a quantization: several times the longest real lists,
 * and about a second.
 */
const maxComparing = 40_000_000

/** The work to compare one tensor: plain names are cheap, patterns are compiled for each comparison. */
const comparing = ({ config_groups = {}, ignore = [], modules_to_not_convert = [] }: typeof Quantization.Type): number =>
  [...ignore, ...modules_to_not_convert, ...Object.values(config_groups).flatMap(({ targets = [] }) => targets)].reduce(
    (sum, target) => sum + (target.startsWith("re:") || target.includes("*") ? 20 + target.length : 1),
    0
  )

/**
 * Number of parameters, counting values that quantized formats pack into one element. Fails if the configuration lists
 * more modules than any real model.
 */
export const countParameters = (groups: ReadonlyArray<TensorGroup>, config: Readonly<Record<PropertyKey, unknown>>): Result.Result<number, Unreadable> => {
  const quantization = Option.getOrUndefined(decodeQuantization(plain(givenQuantization(config, textConfig(config).text))))
  if (quantization !== undefined && groups.length * comparing(quantization) > maxComparing)
    return Result.fail(new Unreadable({ reason: "config.json names more modules in its quantization_config than any model has." }))
  const header: Record<string, { dtype: TensorType; shape: Array<number>; data_offsets: [number, number] }> = {}
  // A group counts as one larger tensor. A single number is a scale, not a parameter.
  for (const { count, dtype, name, shape } of groups)
    if (isTensorType(dtype) && shape.length > 0) header[name] = { dtype, shape: [count, ...shape], data_offsets: [0, 0] }
  const counts = computeNumOfParamsByDtypeSingleFile(header, quantization)
  return Result.succeed(Object.values(counts).reduce((sum, count) => sum + count, 0))
}

/** The type with the most bytes. */
export const dominantType = (groups: Iterable<TensorGroup>): string => {
  const bytes = new Map<string, number>()
  for (const group of groups) bytes.set(group.dtype, (bytes.get(group.dtype) ?? 0) + group.bytes)
  return [...bytes].reduce((best, next) => (next[1] > best[1] ? next : best), ["F32", 0])[0]
}
