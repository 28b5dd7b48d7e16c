import { TensorName } from "./TensorNames.ts"

/**
 * Tensors of one layer with the same type and shape whose names differ only in further numbers, such as the experts of
 * a layer.
 */
export interface TensorGroup {
  /** The name of one of them. */
  readonly name: string
  readonly dtype: string
  readonly shape: ReadonlyArray<number>
  readonly count: number
  /** Total bytes. */
  readonly bytes: number
}

/** Beyond any real model; bounds the memory that a repository can use. */
const maxGroups = 20_000

/** A tensor name without numbers, which all layers of a model share. */
export const kindOf = (name: string): string => name.replace(/\d+/g, "#")

/** Groups tensors. */
export class TensorGroups {
  readonly #groups = new Map<number, { -readonly [Key in keyof TensorGroup]: TensorGroup[Key] }>()
  bytes = 0
  count = 0
  /** Whether the maximum number of groups was exceeded. */
  full = false

  get size(): number {
    return this.#groups.size
  }

  add(name: TensorName, dtype: string, shape: ReadonlyArray<number>, bytes: number, count = 1): void {
    const key = name.group(dtype, shape)
    const group = this.#groups.get(key)
    this.bytes += bytes
    this.count += count
    if (group !== undefined) {
      group.count += count
      group.bytes += bytes
    } else {
      this.full ||= this.#groups.size === maxGroups
      if (!this.full) this.#groups.set(key, { name: name.text, dtype, shape, count, bytes })
    }
  }

  addAll(groups: Iterable<TensorGroup>): void {
    const tensorName = new TensorName()
    for (const { bytes, count, dtype, name, shape } of groups) if (tensorName.read(name)) this.add(tensorName, dtype, shape, bytes, count)
  }

  values(): Iterable<TensorGroup> {
    return this.#groups.values()
  }
}
