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

const throughFirst = /^\D*\d+/

/** A tensor's name without its numbers but the first, which is that of its layer. */
export const groupOf = (name: string): string => {
  const layer = throughFirst.exec(name)?.[0] ?? name
  return layer + kindOf(name.slice(layer.length))
}

/** A name without any number: what the layers of a model have in common. */
export const kindOf = (name: string): string => name.replace(/\d+/g, "#")

/** Adds tensors to groups. */
export class TensorGroups {
  readonly #groups = new Map<string, { name: string; dtype: string; shape: ReadonlyArray<number>; count: number; bytes: number }>()
  bytes = 0
  count = 0
  /** Whether there were more than are kept. */
  full = false

  add(name: string, dtype: string, shape: ReadonlyArray<number>, bytes: number, count = 1): void {
    const key = `${groupOf(name)} ${dtype} ${shape.join()}`
    const group = this.#groups.get(key)
    this.bytes += bytes
    this.count += count
    if (group !== undefined) {
      group.count += count
      group.bytes += bytes
    } else {
      this.full ||= this.#groups.size === maxGroups
      if (!this.full) this.#groups.set(key, { name, dtype, shape, count, bytes })
    }
  }

  addAll(groups: Iterable<TensorGroup>): void {
    for (const { bytes, count, dtype, name, shape } of groups) this.add(name, dtype, shape, bytes, count)
  }

  values(): Iterable<TensorGroup> {
    return this.#groups.values()
  }
}
