import { kindOf, type TensorGroup } from "./TensorGroups.ts"
import { isTower } from "./weightParts.ts"

/** Output and input width of a linear module; null if its packed weights do not show them. */
export type ModuleShape = { readonly output: number; readonly input: number } | null

interface Variant {
  readonly shape: ModuleShape
  readonly layers: Set<string>
}

const weighed = new Set(["F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"])
/** The part of a tensor name that is the same for all wrappers of a text model. */
const fromLayers = /(?:^|\.)((?:layers|h|blocks)\..+)$/

const layerOf = (name: string): string => /\d+/.exec(name)?.[0] ?? ""

/**
 * The shape of the linear module that a tensor outside the towers belongs to; undefined if the tensor belongs to none.
 */
const shapeOfModule = ({ dtype, name, shape }: TensorGroup): ModuleShape | undefined => {
  if (!name.includes(".") || isTower(name)) return undefined
  if (!name.endsWith(".weight") || !weighed.has(dtype)) return null
  if (shape.length !== 2) return undefined
  const [output, input] = shape
  return output === undefined || input === undefined ? null : { output, input }
}

/** The linear modules of a model, found by tensor name, for the validation of adapters. */
export class BaseModules {
  readonly #kinds = new Map<string, Array<Variant>>()
  /** Kinds by name without the wrapper; null if several kinds share a name. */
  readonly #short = new Map<string, string | null>()

  constructor(groups: Iterable<TensorGroup>) {
    for (const group of groups) {
      const shape = shapeOfModule(group)
      if (shape !== undefined) this.#add(group.name, shape)
    }
  }

  #add(name: string, shape: ModuleShape): void {
    const variants = this.#variantsOf(kindOf(name.slice(0, name.lastIndexOf("."))))
    const same = variants.find((variant) => variant.shape?.output === shape?.output && variant.shape?.input === shape?.input)
    if (same === undefined) variants.push({ shape, layers: new Set([layerOf(name)]) })
    else same.layers.add(layerOf(name))
  }

  /** The variants of a kind, which is registered if it is new. */
  #variantsOf(kind: string): Array<Variant> {
    const known = this.#kinds.get(kind)
    if (known !== undefined) return known
    const variants: Array<Variant> = []
    this.#kinds.set(kind, variants)
    const short = fromLayers.exec(kind)?.[1]
    if (short !== undefined) this.#short.set(short, this.#short.has(short) && this.#short.get(short) !== kind ? null : kind)
    return variants
  }

  /** The shape of a module; undefined if the model has no linear module of that name outside its towers. */
  find(module: string): ModuleShape | undefined {
    const kind = kindOf(module)
    const short = fromLayers.exec(kind)?.[1]
    const variants = this.#kinds.get(kind) ?? (short === undefined ? undefined : this.#kinds.get(this.#short.get(short) ?? ""))
    const layer = layerOf(module)
    const candidates = variants?.filter(({ layers }) => layers.has(layer)) ?? []
    return candidates.length === 0 ? undefined : (candidates.find(({ shape }) => shape !== null)?.shape ?? null)
  }

  /** Approximate number of characters in memory. */
  get characters(): number {
    let sum = 0
    for (const [kind, variants] of this.#kinds) for (const { layers } of variants) sum += kind.length * 2 + layers.size * 16
    return sum
  }
}
