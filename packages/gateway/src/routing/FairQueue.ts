/** Who waits, in turns between groups: each group's oldest, one group after the other. All operations but `size` of a group take constant time. */
export class FairQueue<A extends object> {
  /** By group, in the order of their turns; a group without anybody is not there. */
  readonly #groups = new Map<string, Set<A>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  sizeOf(group: string): number {
    return this.#groups.get(group)?.size ?? 0
  }

  add(group: string, member: A) {
    const waiting = this.#groups.get(group)
    if (waiting === undefined) this.#groups.set(group, new Set([member]))
    else waiting.add(member)
    this.#size++
  }

  /** Whether it waited until now. */
  remove(group: string, member: A): boolean {
    const waiting = this.#groups.get(group)
    if (waiting === undefined || !waiting.delete(member)) return false
    if (waiting.size === 0) this.#groups.delete(group)
    this.#size--
    return true
  }

  /** Whose turn it is; the group goes behind the others then. */
  take(): A | undefined {
    for (const group of this.#groups.keys()) return this.#takeFrom(group)
    return undefined
  }

  /** The oldest member of the group with the least weight, of equal ones the group whose turn it is. A group without a weight gets nothing. Takes time by the number of groups. */
  takeLightest(weightOf: (group: string) => number | null): A | undefined {
    let lightest: string | undefined
    let least = Number.POSITIVE_INFINITY
    for (const group of this.#groups.keys()) {
      const weight = weightOf(group)
      if (weight === null || weight >= least) continue
      lightest = group
      least = weight
    }
    return lightest === undefined ? undefined : this.#takeFrom(lightest)
  }

  #takeFrom(group: string): A | undefined {
    const waiting = this.#groups.get(group)
    if (waiting === undefined) return undefined
    for (const member of waiting) {
      waiting.delete(member)
      this.#groups.delete(group)
      if (waiting.size > 0) this.#groups.set(group, waiting)
      this.#size--
      return member
    }
    return undefined
  }

  /** Everybody, in no order. */
  *[Symbol.iterator](): IterableIterator<A> {
    for (const waiting of this.#groups.values()) yield* waiting
  }
}
