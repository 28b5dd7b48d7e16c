import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { optionalNullable } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { floatFormats } from "./floatFormats.ts"
import { NotMergeable } from "./NotMergeable.ts"
import { openTensors, type StoredTensor } from "./TensorFolder.ts"

const Config = Schema.fromJsonString(
  Schema.Struct({
    r: Schema.Int,
    lora_alpha: Schema.Finite,
    use_rslora: optionalNullable(Schema.Boolean),
    alpha_pattern: optionalNullable(Schema.Record(Schema.String, Schema.Finite)),
    rank_pattern: optionalNullable(Schema.Record(Schema.String, Schema.Int))
  })
)

/** The change of one weight [output, input]: `scale` x B A, with A [rank, input] and B [output, rank] in row order. */
export interface LowRankPair {
  readonly a: Float64Array
  readonly b: Float64Array
  readonly rank: number
  readonly input: number
  readonly output: number
  readonly scale: number
}

const pairName = /^base_model\.model\.(.+)\.lora_([AB])\.weight$/u
/** A key that is the name of a module or its end. Other keys are regular expressions, which are not supported. */
const plainKey = /^[A-Za-z0-9_.]+$/u

const valuesOf = Effect.fnUntraced(function* (tensor: StoredTensor) {
  const format = floatFormats.get(tensor.dtype)
  if (format === undefined) return yield* new NotMergeable({ message: `The adapter has a tensor of the type ${tensor.dtype}, which Seatrial cannot merge.` })
  const bytes = yield* Effect.promise(() => tensor.read(0, tensor.bytes))
  const bits = format.bytes === 2 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer)
  return Float64Array.from(bits, format.decode)
})

/**
 * Opens the pairs of an adapter by the name of the weight that each changes. The pairs are read on demand and are
 * small.
 */
export const openAdapter = Effect.fnUntraced(function* (folder: string) {
  const text = yield* Effect.tryPromise({
    try: () => readFile(join(folder, "adapter_config.json"), "utf8"),
    catch: () => new NotMergeable({ message: "The adapter has no adapter_config.json." })
  })
  const config = Schema.decodeUnknownOption(Config)(text)
  if (Option.isNone(config)) return yield* new NotMergeable({ message: "The adapter's adapter_config.json does not state rank and scale." })
  const { alpha_pattern, lora_alpha, r, rank_pattern, use_rslora } = config.value
  const keys = [...Object.keys(alpha_pattern ?? {}), ...Object.keys(rank_pattern ?? {})]
  if (keys.some((key) => !plainKey.test(key)))
    return yield* new NotMergeable({ message: "The adapter's ranks or scales follow from expressions, which are not evaluated." })
  const { byName } = yield* openTensors(folder)
  const halves = new Map<string, { A?: StoredTensor; B?: StoredTensor }>()
  for (const [name, tensor] of byName) {
    const [, module, half] = pairName.exec(name) ?? []
    if (module === undefined) return yield* new NotMergeable({ message: "The adapter has a tensor that belongs to no LoRA pair." })
    halves.set(`${module}.weight`, { ...halves.get(`${module}.weight`), ...(half === "A" ? { A: tensor } : { B: tensor }) })
  }
  const stated = (pattern: Readonly<Record<string, number>> | null | undefined, module: string): number | undefined =>
    Object.entries(pattern ?? {}).find(([key]) => module === key || module.endsWith(`.${key}`))?.[1]
  const read = Effect.fnUntraced(function* (weight: string) {
    const { A, B } = halves.get(weight) ?? {}
    const [rank = 0, input = 0] = A?.shape ?? []
    const [output = 0, inner] = B?.shape ?? []
    const module = weight.replace(/\.weight$/u, "")
    if (A === undefined || B === undefined || inner !== rank || rank !== (stated(rank_pattern, module) ?? r)) {
      return yield* new NotMergeable({ message: `The adapter's pair for ${module.slice(0, 120)} does not have the stated rank.` })
    }
    const alpha = stated(alpha_pattern, module) ?? lora_alpha
    const scale = alpha / (use_rslora === true ? Math.sqrt(rank) : rank)
    const pair: LowRankPair = { a: yield* valuesOf(A), b: yield* valuesOf(B), rank, input, output, scale }
    return pair
  })
  return { weights: new Set(halves.keys()), read }
})
