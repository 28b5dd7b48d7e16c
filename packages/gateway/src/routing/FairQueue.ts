/**
 * A queue that serves groups round-robin, and the members of a group in order of arrival. All operations take constant
 * time unless noted.
 */
export class FairQueue<A extends object> {
  /** Members by group, in the order of the groups' turns. Empty groups are absent. */
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

  /** Returns whether the member was waiting. */
  remove(group: string, member: A): boolean {
    const waiting = this.#groups.get(group)
    if (waiting === undefined || !waiting.delete(member)) return false
    if (waiting.size === 0) this.#groups.delete(group)
    this.#size--
    return true
  }

  /** Removes the next member. Its group moves to the end. */
  take(): A | undefined {
    for (const group of this.#groups.keys()) return this.#takeFrom(group)
    return undefined
  }

  /**
   * Removes the oldest member of the group with the least weight; among equal groups, the one whose turn is next.
   * `weightOf` gets the group and its oldest member. Groups whose weight is null get nothing. Takes time proportional to the number of groups.
   */
  takeLightest(weightOf: (group: string, oldest: A) => number | null): A | undefined {
    let lightest: string | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [group, [oldest]] of this.#groups) {
      const weight = oldest === undefined ? null : weightOf(group, oldest)
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

  /** All members, in no particular order. */
  *[Symbol.iterator](): IterableIterator<A> {
    for (const waiting of this.#groups.values()) yield* waiting
  }
}
