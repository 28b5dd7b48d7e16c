import type { OrgId } from "@seatrial/domain"

/** Maximum number of organizations with cached names. */
const maxOrganizations = 1_000

/** Maximum number of names of one organization. */
const maxNames = 128

/** Removes the oldest entry of a full collection. */
const makeRoom = (entries: { readonly size: number; readonly keys: () => Iterator<string>; readonly delete: (key: string) => unknown }, capacity: number) => {
  if (entries.size < capacity) return
  const oldest = entries.keys().next()
  if (oldest.done !== true) entries.delete(oldest.value)
}

/**
 * Model names for which the database has nothing newer than memory, by organization. Each organization has a separate
 * limit, so that none can evict names of another. The entries are valid until routes change, and only while change
 * notifications arrive.
 */
export class AbsentNames {
  readonly #names = new Map<string, Set<string>>()
  #isListening = false
  /** Increases with each change: the result of a query that began earlier is not cached. */
  generation = 0

  /** Call this when routes may have changed. `isListening`: whether the next change will be notified. */
  clear(isListening: boolean): void {
    this.generation++
    this.#isListening = isListening
    this.#names.clear()
  }

  has(orgId: OrgId, model: string): boolean {
    return this.#names.get(orgId)?.has(model) ?? false
  }

  add(orgId: OrgId, model: string, generation: number): void {
    if (!this.#isListening || generation !== this.generation) return
    let names = this.#names.get(orgId)
    if (names === undefined) {
      makeRoom(this.#names, maxOrganizations)
      names = new Set()
      this.#names.set(orgId, names)
    }
    makeRoom(names, maxNames)
    names.add(model)
  }
}
