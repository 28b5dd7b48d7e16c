/** Who waits, in turns between groups: each group's oldest, one group after the other. All operations but `size` of a group take constant time. */
export class FairQueue<A extends object> {
  /** By group, in the order of their turns; a group without anybody is not there. */
  readonly #groups = new Map<string, Set<A>>()
  #size = 0

  get size(): number {
    return this.#size
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
    for (const [group, waiting] of this.#groups) {
      for (const member of waiting) {
        waiting.delete(member)
        this.#groups.delete(group)
        if (waiting.size > 0) this.#groups.set(group, waiting)
        this.#size--
        return member
      }
    }
    return undefined
  }

  /** Everybody, in no order. */
  *[Symbol.iterator](): IterableIterator<A> {
    for (const waiting of this.#groups.values()) yield* waiting
  }
}
