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

type Config = typeof ConfigFile.Type
type Shapes = ReadonlyMap<string, readonly [output: number, input: number]>

/** The unsupported parts of this configuration, with vLLM's messages. */
const problemsOf = (config: Config, maxRank: number): ReadonlyArray<string> => {
  const highest = Math.max(config.r, ...Object.values(config.rank_pattern ?? {}))
  return [
    ...((config.modules_to_save ?? []).length > 0 ? ["modules_to_save is not supported."] : []),
    ...(config.use_dora === true ? ["vLLM does not yet support DoRA."] : []),
    ...(highest > maxRank ? [`LoRA rank ${highest} is greater than max_lora_rank ${maxRank}.`] : []),
    ...((config.bias ?? "none") === "none" ? [] : ["Adapter bias is not supported."])
  ]
}

/** The modules that the tensors change. Throws `BootFailure` if a tensor belongs to no weight. */
const modulesOf = (files: Safetensors, directory: string, shapes: Shapes): ReadonlySet<string> => {
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
  return modules
}

const tensorNames = (module: string) => [`base_model.model.${module}.lora_A.weight`, `base_model.model.${module}.lora_B.weight`] as const

const readPair = (files: Safetensors, config: Config, shapes: Shapes, module: string): LowRank => {
  const [output, input] = shapes.get(`${module}.weight`) ?? [0, 0]
  const rank = matched(config.rank_pattern, module) ?? config.r
  const alpha = matched(config.alpha_pattern, module) ?? config.lora_alpha
  const [a, b] = tensorNames(module)
  return { a: files.read(a, [rank, input]), b: files.read(b, [output, rank]), rank, scale: alpha / (config.use_rslora === true ? Math.sqrt(rank) : rank) }
}

/**
 * Reads a LoRA adapter for weights with these names and shapes. Throws `BootFailure`, with vLLM's message if vLLM has
 * one, if the rank exceeds `maxRank`, the kind is not supported, or a tensor belongs to no weight.
 */
export const readAdapter = (directory: string, shapes: Shapes, maxRank: number): Adapter => {
  const config = readJsonFile(directory, "adapter_config.json", ConfigFile)
  const problems = problemsOf(config, maxRank)
  if (problems.length > 0) throw new BootFailure(problems.join(" "))
  const files = new Safetensors(directory)
  const modules = [...modulesOf(files, directory, shapes)]
  const pairs = new Map(modules.map((module) => [`${module}.weight`, readPair(files, config, shapes, module)]))
  if (pairs.size === 0) throw new BootFailure(`${directory} doesn't contain tensors`)
  return { pairs, bytes: files.bytes(modules.flatMap(tensorNames)) }
}
