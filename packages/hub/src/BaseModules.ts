import { kindOf, type TensorGroup } from "./TensorGroups.ts"
import { isTower } from "./weightParts.ts"

/** How many values a linear module takes and gives; null where its weights are packed in a way that does not tell. */
export type ModuleShape = { readonly output: number; readonly input: number } | null

interface Variant {
  readonly shape: ModuleShape
  readonly layers: Set<string>
}

const weighed = new Set(["F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"])
/** Where the names of a text model's layers begin to be the same in all wrappings. */
const fromLayers = /(?:^|\.)((?:layers|h|blocks)\..+)$/

const layerOf = (name: string): string => /\d+/.exec(name)?.[0] ?? ""

/** The linear modules of a model by the names of its tensors, for those who add something to them. */
export class BaseModules {
  readonly #kinds = new Map<string, Array<Variant>>()
  /** Kinds by what follows the wrapping; null where several have the same. */
  readonly #short = new Map<string, string | null>()

  constructor(groups: Iterable<TensorGroup>) {
    for (const { dtype, name, shape } of groups) {
      const dot = name.lastIndexOf(".")
      if (dot < 0 || isTower(name)) continue
      const [output, input] = shape
      const plain = name.endsWith(".weight") && weighed.has(dtype)
      if (plain && shape.length !== 2) continue
      const module = name.slice(0, dot)
      const known = plain && output !== undefined && input !== undefined ? { output, input } : null
      const kind = kindOf(module)
      const variants = this.#kinds.get(kind) ?? []
      if (variants.length === 0) {
        this.#kinds.set(kind, variants)
        const short = fromLayers.exec(kind)?.[1]
        if (short !== undefined) this.#short.set(short, this.#short.has(short) && this.#short.get(short) !== kind ? null : kind)
      }
      const same = variants.find((variant) => variant.shape?.output === known?.output && variant.shape?.input === known?.input)
      if (same === undefined) variants.push({ shape: known, layers: new Set([layerOf(name)]) })
      else same.layers.add(layerOf(name))
    }
  }

  /** The shape of a module; undefined where the model has no linear module of that name outside its towers. */
  find(module: string): ModuleShape | undefined {
    const kind = kindOf(module)
    const short = fromLayers.exec(kind)?.[1]
    const variants = this.#kinds.get(kind) ?? (short === undefined ? undefined : this.#kinds.get(this.#short.get(short) ?? ""))
    const layer = layerOf(module)
    const there = variants?.filter(({ layers }) => layers.has(layer)) ?? []
    return there.length === 0 ? undefined : (there.find(({ shape }) => shape !== null)?.shape ?? null)
  }

  /** Roughly the characters that it keeps. */
  get characters(): number {
    let sum = 0
    for (const [kind, variants] of this.#kinds) for (const { layers } of variants) sum += kind.length * 2 + layers.size * 16
    return sum
  }
}
