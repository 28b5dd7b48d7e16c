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
    onNone: () => Result.fail(new Unreadable({ reason: "The adapter's header describes a tensor in a way that no engine takes." })),
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

/**
 * Validates an adapter's tensors against its configuration and base: each is half of a pair for a linear module of the
 * base, with the configured rank.
 */
export const checkAdapter = (
  config: AdapterConfig,
  tensors: ReadonlyArray<AdapterTensor>,
  base: { readonly repo: string; readonly config: ModelConfig; readonly modules: BaseModules }
): Result.Result<AdapterModules, Unreadable> => {
  const fail = (reason: string) => Result.fail(new Unreadable({ reason }))
  const pairs = new Map<string, { A?: AdapterTensor; B?: AdapterTensor }>()
  for (const tensor of tensors) {
    const shown = tensor.name.slice(0, 200)
    if (/\.lora_embedding_[AB]$|embed_tokens|embeddings/.test(tensor.name)) return fail(`Its tensor ${shown} changes the embeddings, which is not served.`)
    const [, module, half] = pair.exec(tensor.name) ?? []
    if (module === undefined) return fail(`Its tensor ${shown} is not half of a low-rank pair: engines would skip it or refuse it.`)
    if (!types.has(tensor.dtype)) return fail(`Its tensor ${shown} is of type ${tensor.dtype}; adapters have F32, F16 or BF16.`)
    if (tensor.shape.length !== 2) return fail(`Its tensor ${shown} has ${tensor.shape.length} dimensions and not two.`)
    pairs.set(module, { ...pairs.get(module), ...(half === "lora_A" ? { A: tensor } : { B: tensor }) })
  }
  if (pairs.size === 0) return fail("Its adapter_model.safetensors holds no low-rank pair.")
  const leaves = new Set<string>()
  const byParent = new Map<string, Set<string>>()
  let highest = 0
  for (const [module, { A, B }] of pairs) {
    const shown = module.slice(0, 200)
    const [rank, input] = A?.shape ?? []
    const [output, inner] = B?.shape ?? []
    if (rank === undefined || input === undefined || output === undefined || inner === undefined)
      return fail(`Its module ${shown} has ${A === undefined ? "no lora_A" : "no lora_B"}.`)
    const shape = base.modules.find(module)
    if (shape === undefined) return fail(`Its tensor ${A?.name.slice(0, 200)} is for a linear module that ${base.repo} does not have: engines would skip it.`)
    const layer = unnamedLayer(config, module)
    if (layer !== undefined) {
      const layerList = config.layers.join(", ")
      return fail(
        `Its tensor ${A?.name.slice(0, 200)} adapts layer ${layer}; layers_to_transform names ${layerList.length > 80 ? `${config.layers.length} others` : layerList} alone, which engines do not heed.`
      )
    }
    const ranks = ranksOf(config, module)
    if (!ranks.has(rank) || inner !== rank) {
      return fail(
        `Its tensor ${(ranks.has(rank) ? B : A)?.name.slice(0, 200)} is [${(ranks.has(rank) ? [output, inner] : [rank, input]).join(", ")}]; adapter_config.json states the rank ${[...ranks].join(" or ")}.`
      )
    }
    const side = hiddenSide[leafOf(module)]
    const expected =
      shape ??
      (side === "input" ? { input: base.config.hidden_size, output } : side === "output" ? { input, output: base.config.hidden_size } : { input, output })
    if (expected.input !== input)
      return fail(`Its tensor ${A?.name.slice(0, 200)} is [${rank}, ${input}]; the module takes ${expected.input} values in ${base.repo}.`)
    if (expected.output !== output)
      return fail(`Its tensor ${B?.name.slice(0, 200)} is [${output}, ${inner}]; the module gives ${expected.output} values in ${base.repo}.`)
    highest = Math.max(highest, rank)
    leaves.add(leafOf(module))
    const parent = module.slice(0, Math.max(0, module.lastIndexOf(".")))
    byParent.set(parent, (byParent.get(parent) ?? new Set()).add(leafOf(module)))
  }
  const { target } = config
  const targetNames = typeof target === "string" ? null : new Set(target.map(leafOf))
  const stray = targetNames === null ? undefined : [...leaves].find((leaf) => !targetNames.has(leaf))
  if (stray !== undefined) return fail(`Its tensors adapt ${stray}, which target_modules does not name.`)
  const unpaired = together.filter(([module, needs]) => [...byParent.values()].some((adapted) => adapted.has(module) && !adapted.has(needs)))
  return Result.succeed({
    rank: highest,
    uniform: Object.keys(config.rankPattern).length === 0 && Object.keys(config.alphaPattern).length === 0,
    targets: [...leaves].sort(),
    unpaired: unpaired.map(([module, needs]) => `${module} without ${needs}`),
    experts: [...pairs.keys()].some((module) => /\.experts\./.test(module)),
    bytes: tensors.reduce((sum, { from, to }) => sum + to - from, 0)
  })
}
