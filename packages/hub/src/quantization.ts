import type { QuantizationScheme } from "@seatrial/domain"
import { Predicate, Result } from "effect"
import { ConfigReader, type Json } from "./ConfigReader.ts"
import type { Unreadable } from "./failures.ts"

/**
 * A checkpoint's quantization: the method under the name that engines use (`none` without quantization), and its
 * details.
 */
export interface Quantization {
  readonly method: string
  readonly scheme: QuantizationScheme | null
}

/** The scheme of a compressed-tensors checkpoint, from its first group, which covers most of it. */
const groupOf = (raw: Json): ConfigReader | null => {
  const groups = Predicate.isObject(raw.config_groups) ? Object.values(raw.config_groups).find(Predicate.isObject) : undefined
  return groups === undefined ? null : new ConfigReader(groups)
}

const formatPattern = /^[A-Za-z0-9_.:-]{1,64}$/

/** The parts of a quantization's description. */
interface SchemeParts {
  readonly raw: Json
  readonly own: ConfigReader
  readonly group: ConfigReader | null
  readonly weights: ConfigReader | null
  readonly inputs: ConfigReader | null
}

const partsOf = (raw: Json): SchemeParts => {
  // ModelOpt's own file adds another level.
  const own = new ConfigReader(Predicate.isObject(raw.quantization) ? raw.quantization : raw)
  const group = groupOf(raw)
  return { raw, own, group, weights: group?.inner("weights") ?? null, inputs: group?.inner("input_activations") ?? null }
}

const maxGroupSize = 1_000_000

const numberOf = (reader: ConfigReader | null, key: string): number | null => {
  const value = reader?.value(key)
  return typeof value === "number" && Number.isInteger(value) && value >= -1 && value <= maxGroupSize ? value : null
}

const flagOf = (reader: ConfigReader | null, key: string): boolean | null => {
  const value = reader?.value(key)
  return typeof value === "boolean" ? value : null
}

const textOf = (reader: ConfigReader | null, ...keys: ReadonlyArray<string>) =>
  keys.map((key) => reader?.value(key)).find((value) => typeof value === "string" && formatPattern.test(value))

const bitsOf = ({ own, raw, weights }: SchemeParts): number | null => {
  const bitsandbytes = raw.load_in_4bit === true ? 4 : raw.load_in_8bit === true ? 8 : null
  return bitsandbytes ?? weights?.size(64, "num_bits") ?? own.size(64, "bits", "w_bit", "wbits")
}

/** Blocks have a height and a width. The values of a row share a scale over the width. */
const blockWidth = ({ own, weights }: SchemeParts): number | null => {
  const block = weights?.value("block_structure") ?? own.value("weight_block_size")
  return Array.isArray(block) ? new ConfigReader({ width: block[1] }).size(maxGroupSize, "width") : null
}

const groupSizeOf = (parts: SchemeParts): number | null =>
  numberOf(parts.weights, "group_size") ?? blockWidth(parts) ?? numberOf(parts.own, "group_size") ?? numberOf(parts.own, "q_group_size")

const symmetryOf = ({ own, weights }: SchemeParts): boolean | null => {
  const symmetric = flagOf(weights, "symmetric") ?? flagOf(own, "sym")
  const zeroPoint = flagOf(own, "zero_point")
  return symmetric ?? (zeroPoint === null ? null : !zeroPoint)
}

const formatOf = ({ group, own }: SchemeParts) =>
  textOf(group, "format") ?? textOf(own, "quant_algo", "format", "packing_format", "bnb_4bit_quant_type", "fmt", "version")

/** Bits of a cached value by the name of ModelOpt's algorithm. */
const cacheAlgorithmBits: ReadonlyMap<unknown, number> = new Map([
  ["FP8", 8],
  ["NVFP4", 4]
])

const cacheBitsOf = ({ own, raw }: SchemeParts): number | null => {
  const cache = raw.kv_cache_scheme ?? own.value("kv_cache_scheme")
  const stated = Predicate.isObject(cache) ? new ConfigReader(cache).size(64, "num_bits") : null
  return stated ?? cacheAlgorithmBits.get(textOf(own, "kv_cache_quant_algo")) ?? null
}

/** The number formats of weights and activations. */
const numberFormats = (parts: SchemeParts): QuantizationScheme => {
  const bits = bitsOf(parts)
  const activationBits = parts.inputs?.size(64, "num_bits") ?? null
  const type = textOf(parts.weights, "type")
  const activationType = textOf(parts.inputs, "type")
  return {
    ...(bits === null ? {} : { bits }),
    ...(activationBits === null ? {} : { activation_bits: activationBits }),
    ...(type === undefined ? {} : { floating: type === "float" }),
    ...(activationType === undefined ? {} : { activation_floating: activationType === "float" })
  }
}

/** How the weights are grouped, and the bits of the KV cache. */
const layout = (parts: SchemeParts): QuantizationScheme => {
  const groupSize = groupSizeOf(parts)
  const symmetric = symmetryOf(parts)
  const descAct = flagOf(parts.own, "desc_act")
  const cacheBits = cacheBitsOf(parts)
  const format = formatOf(parts)
  return {
    ...(groupSize === null ? {} : { group_size: groupSize }),
    ...(symmetric === null ? {} : { symmetric }),
    ...(descAct === null ? {} : { desc_act: descAct }),
    ...(cacheBits === null ? {} : { cache_bits: cacheBits }),
    ...(typeof format === "string" ? { format } : {})
  }
}

/** Maps the terms of the methods to one vocabulary. Unknown terms are omitted and are no reason for a refusal. */
const schemeOf = (raw: Json): QuantizationScheme | null => {
  const parts = partsOf(raw)
  const scheme = { ...numberFormats(parts), ...layout(parts) }
  return Object.keys(scheme).length === 0 ? null : scheme
}

const methodOf = (raw: Json): Result.Result<string, Unreadable> =>
  Result.map(new ConfigReader(raw).name("quant_method"), (method) => {
    if (method !== null) return method.toLowerCase().replace("compressed_tensors", "compressed-tensors")
    if (raw.load_in_4bit === true || raw.load_in_8bit === true) return "bitsandbytes"
    // ModelOpt's own exports name the producer instead.
    const producer = Predicate.isObject(raw.producer) ? raw.producer.name : undefined
    return producer === "modelopt" || (Predicate.isObject(raw.quantization) && "quant_algo" in raw.quantization) ? "modelopt" : "unknown"
  })

/** The quantization in a configuration, if any: at the top level, or with the layers. */
export const givenQuantization = (config: Json, text: Json): unknown =>
  config.quantization_config ?? text.quantization_config ?? config.compression_config ?? text.compression_config

/** How a checkpoint is quantized, by its entire configuration and the one of its layers. */
export const quantizationOf = (config: Json, text: Json): Result.Result<Quantization, Unreadable> => {
  const raw = givenQuantization(config, text)
  if (!Predicate.isObject(raw)) return Result.succeed({ method: "none", scheme: null })
  return Result.map(methodOf(raw), (method) => ({ method, scheme: schemeOf(raw) }))
}
