import type { ModelConfig } from "@seatrial/domain"
import { Option, Result, Schema } from "effect"
import type { AdapterConfig } from "./adapterConfig.ts"
import type { BaseModules } from "./BaseModules.ts"
import { Unreadable } from "./failures.ts"

/** One tensor of an adapter's file; `from` and `to` are byte offsets after the header. */
export interface AdapterTensor {
  readonly name: string
  readonly dtype: string
  readonly shape: ReadonlyArray<number>
  readonly from: number
  readonly to: number
}

const Entry = Schema.Struct({ dtype: Schema.String, shape: Schema.Array(Schema.Int), data_offsets: Schema.Tuple([Schema.Int, Schema.Int]) })
const decodeEntries = Schema.decodeUnknownOption(Schema.Record(Schema.String, Entry))

/** The tensors of a validated header, by name. */
export const adapterTensors = (header: Readonly<Record<PropertyKey, unknown>>): Result.Result<ReadonlyArray<AdapterTensor>, Unreadable> => {
  const { __metadata__: _, ...entries } = header
  return Option.match(decodeEntries(entries), {
    onNone: () => Result.fail(new Unreadable({ reason: "The adapter's header has an invalid description of a tensor." })),
    onSome: (known) =>
      Result.succeed(
        Object.entries(known)
          .map(([name, { data_offsets, dtype, shape }]) => ({ name, dtype, shape, from: data_offsets[0], to: data_offsets[1] }))
          .sort((a, b) => (a.name < b.name ? -1 : 1))
      )
  })
}

/** The facts of an adapter's tensors that its configuration does not contain. */
export interface AdapterModules {
  /** The highest rank. */
  readonly rank: number
  readonly uniform: boolean
  readonly targets: ReadonlyArray<string>
  readonly unpaired: ReadonlyArray<string>
  readonly experts: boolean
  readonly bytes: number
}

const pair = /^base_model\.model\.(.+)\.(lora_A|lora_B)\.weight$/
const types = new Set(["F32", "F16", "BF16"])

/** Projections that engines fuse, and the one without which they reject the others (`sglang/srt/lora/lora.py`). */
const together: ReadonlyArray<readonly [module: string, needs: string]> = [
  ["q_proj", "v_proj"],
  ["k_proj", "q_proj"],
  ["v_proj", "q_proj"],
  ["up_proj", "gate_proj"],
  ["q_a_proj", "kv_a_proj_with_mqa"],
  ["kv_a_proj_with_mqa", "q_a_proj"]
]

const leafOf = (module: string): string => module.slice(module.lastIndexOf(".") + 1)

/** The side of a projection that has the model's width, for packed weights. */
const hiddenSide: Readonly<Record<string, "input" | "output">> = {
  q_proj: "input",
  k_proj: "input",
  v_proj: "input",
  gate_proj: "input",
  up_proj: "input",
  o_proj: "output",
  down_proj: "output"
}

/**
 * As in PEFT, a key of a pattern selects modules whose name it equals or ends. For a regular expression, only the
 * values are used.
 */
const plainKey = /^[A-Za-z0-9_.]+$/

/** The possible ranks of a module by the configuration: one, or several if a regular expression decides. */
const ranksOf = ({ rank, rankPattern }: AdapterConfig, module: string): ReadonlySet<number> => {
  const possible = new Set<number>()
  for (const [key, value] of Object.entries(rankPattern)) {
    if (!plainKey.test(key)) possible.add(value)
    else if (module === key || module.endsWith(`.${key}`)) return possible.size === 0 ? new Set([value]) : possible.add(value)
  }
  return possible.add(rank)
}

/**
 * Numbers in a module's name that may be its layer. PEFT versions differ if there are several, as for an expert in a
 * layer, so any of them counts.
 */
const numbersIn = (module: string, pattern: ReadonlyArray<string>): ReadonlyArray<number> => {
  const parts = module.split(".")
  const numbered = parts.flatMap((part, at) =>
    /^\d+$/.test(part) && at > 0 && at < parts.length - 1 ? [{ before: parts.slice(0, at).join("."), number: Number(part) }] : []
  )
  const matching = numbered.filter(({ before }) => pattern.some((name) => before.endsWith(name)))
  return (matching.length === 0 ? numbered : matching).map(({ number }) => number)
}

/**
 * The layer of a module that PEFT would skip because `layers_to_transform` does not list it. A string in
 * `target_modules`, or a module's full name in it, takes precedence.
 */
const unnamedLayer = ({ layers, layersPattern, target }: AdapterConfig, module: string): number | undefined => {
  if (layers.length === 0 || typeof target === "string" || target.includes(module)) return undefined
  const numbers = numbersIn(module, layersPattern)
  return numbers.some((number) => layers.includes(number)) ? undefined : numbers[0]
}

/** The model that an adapter changes. */
interface AdapterBase {
  readonly repo: string
  readonly config: ModelConfig
  readonly modules: BaseModules
}

/** The two halves of a low-rank pair, of which one may be missing. */
interface Halves {
  readonly A?: AdapterTensor
  readonly B?: AdapterTensor
}

/** A complete pair, and the sizes of its tensors: `[rank, input]` and `[output, inner]`. */
interface Pair {
  readonly module: string
  readonly A: AdapterTensor
  readonly B: AdapterTensor
  readonly rank: number
  readonly input: number
  readonly output: number
  readonly inner: number
}

const fail = (reason: string) => Result.fail(new Unreadable({ reason }))

/** Truncates a name for a message. */
const shortName = (name: string) => name.slice(0, 200)

/** Why a tensor is not half of a low-rank pair that engines apply, as a sentence; null if it is. */
const tensorProblem = ({ dtype, name, shape }: AdapterTensor): string | null => {
  if (/\.lora_embedding_[AB]$|embed_tokens|embeddings/.test(name)) return `Its tensor ${shortName(name)} changes the embeddings, which is not served.`
  if (!pair.test(name)) return `Its tensor ${shortName(name)} is not half of a low-rank pair: engines would skip it or refuse it.`
  if (!types.has(dtype)) return `Its tensor ${shortName(name)} is of type ${dtype}; adapters have F32, F16 or BF16.`
  return shape.length === 2 ? null : `Its tensor ${shortName(name)} has ${shape.length} dimensions and not two.`
}

/** The tensors by the module that they adapt. */
const halvesOf = (tensors: ReadonlyArray<AdapterTensor>): Result.Result<ReadonlyMap<string, Halves>, Unreadable> => {
  const halves = new Map<string, Halves>()
  for (const tensor of tensors) {
    const problem = tensorProblem(tensor)
    if (problem !== null) return fail(problem)
    const [, module = "", half] = pair.exec(tensor.name) ?? []
    halves.set(module, { ...halves.get(module), ...(half === "lora_A" ? { A: tensor } : { B: tensor }) })
  }
  return halves.size === 0 ? fail("Its adapter_model.safetensors holds no low-rank pair.") : Result.succeed(halves)
}

const pairOf = (module: string, { A, B }: Halves): Result.Result<Pair, Unreadable> => {
  const [rank, input] = A?.shape ?? []
  const [output, inner] = B?.shape ?? []
  if (A === undefined || rank === undefined || input === undefined)
    return fail(`Its module ${shortName(module)} has ${A === undefined ? "no lora_A" : "no lora_B"}.`)
  if (B === undefined || output === undefined || inner === undefined) return fail(`Its module ${shortName(module)} has no lora_B.`)
  return Result.succeed({ module, A, B, rank, input, output, inner })
}

const moduleProblem = ({ A, module }: Pair, base: AdapterBase): string | null =>
  base.modules.find(module) === undefined
    ? `Its tensor ${shortName(A.name)} is for a linear module that ${base.repo} does not have: engines would skip it.`
    : null

const layerProblem = ({ A, module }: Pair, config: AdapterConfig): string | null => {
  const layer = unnamedLayer(config, module)
  if (layer === undefined) return null
  const layerList = config.layers.join(", ")
  return `Its tensor ${shortName(A.name)} adapts layer ${layer}; layers_to_transform lists only ${layerList.length > 80 ? `${config.layers.length} others` : layerList}, and engines ignore that setting.`
}

const rankProblem = ({ A, B, inner, input, module, output, rank }: Pair, config: AdapterConfig): string | null => {
  const ranks = ranksOf(config, module)
  if (ranks.has(rank) && inner === rank) return null
  const [tensor, shape] = ranks.has(rank) ? [B, [output, inner]] : [A, [rank, input]]
  return `Its tensor ${shortName(tensor.name)} is [${shape.join(", ")}]; adapter_config.json states the rank ${[...ranks].join(" or ")}.`
}

/** The sizes of the base's module; without them, the sizes of the pair. */
const expectedSizes = ({ input, module, output }: Pair, base: AdapterBase) => {
  const shape = base.modules.find(module)
  if (shape !== undefined && shape !== null) return shape
  const side = hiddenSide[leafOf(module)]
  const width = base.config.hidden_size
  return { input: side === "input" ? width : input, output: side === "output" ? width : output }
}

const sizeProblem = (checked: Pair, base: AdapterBase): string | null => {
  const { A, B, inner, input, output, rank } = checked
  const expected = expectedSizes(checked, base)
  if (expected.input !== input) return `Its tensor ${shortName(A.name)} is [${rank}, ${input}]; in ${base.repo} the module has ${expected.input} input values.`
  if (expected.output !== output)
    return `Its tensor ${shortName(B.name)} is [${output}, ${inner}]; in ${base.repo} the module has ${expected.output} output values.`
  return null
}

/** Why engines do not apply a pair, as a sentence; null if they do. */
const pairProblem = (checked: Pair, config: AdapterConfig, base: AdapterBase): string | null =>
  moduleProblem(checked, base) ?? layerProblem(checked, config) ?? rankProblem(checked, config) ?? sizeProblem(checked, base)

const pairsOf = (config: AdapterConfig, halves: ReadonlyMap<string, Halves>, base: AdapterBase): Result.Result<ReadonlyArray<Pair>, Unreadable> =>
  Result.gen(function* () {
    const pairs: Array<Pair> = []
    for (const [module, each] of halves) {
      const complete = yield* pairOf(module, each)
      const problem = pairProblem(complete, config, base)
      if (problem !== null) return yield* fail(problem)
      pairs.push(complete)
    }
    return pairs
  })

/** The projections that engines reject without a second one, which the adapter lacks. */
const unpairedOf = (modules: Iterable<string>): ReadonlyArray<string> => {
  const byParent = new Map<string, Set<string>>()
  for (const module of modules) {
    const parent = module.slice(0, Math.max(0, module.lastIndexOf(".")))
    byParent.set(parent, (byParent.get(parent) ?? new Set()).add(leafOf(module)))
  }
  const isUnpaired = (module: string, needs: string) => [...byParent.values()].some((adapted) => adapted.has(module) && !adapted.has(needs))
  return together.filter(([module, needs]) => isUnpaired(module, needs)).map(([module, needs]) => `${module} without ${needs}`)
}

/** The first adapted kind of module that the configuration does not name. */
const strayTarget = ({ target }: AdapterConfig, leaves: ReadonlySet<string>): string | undefined => {
  if (typeof target === "string") return undefined
  const targetNames = new Set(target.map(leafOf))
  return [...leaves].find((leaf) => !targetNames.has(leaf))
}

/**
 * Validates an adapter's tensors against its configuration and base: each is half of a pair for a linear module of the
 * base, with the configured rank.
 */
export const checkAdapter = (config: AdapterConfig, tensors: ReadonlyArray<AdapterTensor>, base: AdapterBase): Result.Result<AdapterModules, Unreadable> =>
  Result.gen(function* () {
    const halves = yield* halvesOf(tensors)
    const pairs = yield* pairsOf(config, halves, base)
    const leaves = new Set(pairs.map(({ module }) => leafOf(module)))
    const stray = strayTarget(config, leaves)
    if (stray !== undefined) return yield* fail(`Its tensors adapt ${stray}, which is not in target_modules.`)
    return {
      rank: pairs.reduce((highest, { rank }) => Math.max(highest, rank), 0),
      uniform: Object.keys(config.rankPattern).length === 0 && Object.keys(config.alphaPattern).length === 0,
      targets: [...leaves].sort(),
      unpaired: unpairedOf(halves.keys()),
      experts: [...halves.keys()].some((module) => /\.experts\./.test(module)),
      bytes: tensors.reduce((total, { from, to }) => total + to - from, 0)
    }
  })
