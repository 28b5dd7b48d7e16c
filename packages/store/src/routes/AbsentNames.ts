import type { OrgId } from "@seatrial/domain"

/** Organizations of which names are remembered. */
const maxOrganizations = 1_000

/** Names of one organization. */
const maxNames = 128

/** Removes the oldest entry of a full collection. */
const makeRoom = (entries: { readonly size: number; readonly keys: () => Iterator<string>; readonly delete: (key: string) => unknown }, capacity: number) => {
  if (entries.size < capacity) return
  const oldest = entries.keys().next()
  if (oldest.done !== true) entries.delete(oldest.value)
}

/**
 * Names of models for which the database has nothing that memory lacks, by organization: each has its own bound, so that nobody pushes out another's. They hold until
 * routes change, and only while changes are heard of.
 */
export class AbsentNames {
  readonly #names = new Map<string, Set<string>>()
  #isListening = false
  /** Increases with each change: an answer that was asked for before is not remembered. */
  generation = 0

  /** Routes may have changed. `isListening`: whether the next change will be heard of. */
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
