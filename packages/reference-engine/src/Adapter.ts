import { optionalNullable } from "@seatrial/domain"
import * as Schema from "effect/Schema"
import { BootFailure } from "./BootFailure.ts"
import { readJsonFile } from "./ModelConfig.ts"
import { Safetensors } from "./Safetensors.ts"
import type { Tensor } from "./Tensor.ts"

const Rank = Schema.Int.check(Schema.isGreaterThan(0))

const ConfigFile = Schema.Struct({
  r: Rank,
  lora_alpha: Schema.Finite,
  target_modules: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  use_rslora: optionalNullable(Schema.Boolean),
  use_dora: optionalNullable(Schema.Boolean),
  bias: optionalNullable(Schema.String),
  modules_to_save: optionalNullable(Schema.Array(Schema.String)),
  rank_pattern: optionalNullable(Schema.Record(Schema.String, Rank)),
  alpha_pattern: optionalNullable(Schema.Record(Schema.String, Schema.Finite))
})

/** The update of one linear module: `scale` x B (A x). */
export interface LowRank {
  readonly a: Tensor
  readonly b: Tensor
  readonly rank: number
  readonly scale: number
}

/** A LoRA adapter, keyed by the names of the weights that it changes. */
export interface Adapter {
  readonly pairs: ReadonlyMap<string, LowRank>
  /** Bytes of memory of its tensors. */
  readonly bytes: number
}

/** The value of the first key that equals the module's name or its end, which is how PEFT matches keys. */
const matched = <A>(pattern: Readonly<Record<string, A>> | null | undefined, module: string): A | undefined =>
  Object.entries(pattern ?? {}).find(([key]) => new RegExp(`^(?:.*\\.)?(?:${key})$`).test(module))?.[1]

/**
 * Reads a LoRA adapter for weights with these names and shapes. Throws `BootFailure`, with vLLM's message if vLLM has
 * one, if the rank exceeds `maxRank`, the kind is not supported, or a tensor belongs to no weight.
 */
export const readAdapter = (directory: string, shapes: ReadonlyMap<string, readonly [output: number, input: number]>, maxRank: number): Adapter => {
  const config = readJsonFile(directory, "adapter_config.json", ConfigFile)
  const highest = Math.max(config.r, ...Object.values(config.rank_pattern ?? {}))
  const problems = [
    ...((config.modules_to_save ?? []).length > 0 ? ["modules_to_save is not supported."] : []),
    ...(config.use_dora === true ? ["vLLM does not yet support DoRA."] : []),
    ...(highest > maxRank ? [`LoRA rank ${highest} is greater than max_lora_rank ${maxRank}.`] : []),
    ...((config.bias ?? "none") === "none" ? [] : ["Adapter bias is not supported."])
  ]
  if (problems.length > 0) throw new BootFailure(problems.join(" "))
  const files = new Safetensors(directory)
  const modules = new Set<string>()
  const unexpected: Array<string> = []
  for (const name of files.names()) {
    const [, module] = /^base_model\.model\.(.+)\.lora_[AB]\.weight$/.exec(name) ?? []
    if (module === undefined) throw new BootFailure(`${name} is unsupported LoRA weight`)
    if (shapes.has(`${module}.weight`)) modules.add(module)
    else unexpected.push(module)
  }
  if (unexpected.length > 0) {
    const known = [...new Set([...shapes.keys()].map((name) => name.split(".").at(-2)))]
    throw new BootFailure(
      `While loading ${directory}, expected target modules in {${known.join(", ")}} but received [${unexpected.join(", ")}]. Please verify that the loaded LoRA module is correct`
    )
  }
  const pairs = new Map<string, LowRank>()
  let bytes = 0
  for (const module of modules) {
    const [output, input] = shapes.get(`${module}.weight`) ?? [0, 0]
    const rank = matched(config.rank_pattern, module) ?? config.r
    const alpha = matched(config.alpha_pattern, module) ?? config.lora_alpha
    const names = [`base_model.model.${module}.lora_A.weight`, `base_model.model.${module}.lora_B.weight`] as const
    const a = files.read(names[0], [rank, input])
    const b = files.read(names[1], [output, rank])
    bytes += files.bytes(names)
    pairs.set(`${module}.weight`, { a, b, rank, scale: alpha / (config.use_rslora === true ? Math.sqrt(rank) : rank) })
  }
  if (pairs.size === 0) throw new BootFailure(`${directory} doesn't contain tensors`)
  return { pairs, bytes }
}
