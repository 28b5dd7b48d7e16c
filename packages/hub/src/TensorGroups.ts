import { TensorName } from "./TensorNames.ts"

/** Tensors of one layer that differ in nothing but further numbers in their names, such as those of a layer's experts, with one type and shape. */
export interface TensorGroup {
  /** One of them. */
  readonly name: string
  readonly dtype: string
  readonly shape: ReadonlyArray<number>
  readonly count: number
  /** Of all of them together. */
  readonly bytes: number
}

/** Far beyond every real model; bounds what a repository can make us keep. */
const maxGroups = 20_000

/** A name without any number: what the layers of a model have in common. */
export const kindOf = (name: string): string => name.replace(/\d+/g, "#")

/** Adds tensors to groups. */
export class TensorGroups {
  readonly #groups = new Map<number, { -readonly [Key in keyof TensorGroup]: TensorGroup[Key] }>()
  bytes = 0
  count = 0
  /** Whether there were more than are kept. */
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
    const named = new TensorName()
    for (const { bytes, count, dtype, name, shape } of groups) if (named.read(name)) this.add(named, dtype, shape, bytes, count)
  }

  values(): Iterable<TensorGroup> {
    return this.#groups.values()
  }
}
