import type { DeploymentId } from "@seatrial/domain"
import { Effect } from "effect"
import type { RunStore } from "../RunStore.ts"

/** One name for each run, and the runs of each name. It fills with the first pass over each run. */
export interface RunIndex extends RunStore {
  /** Null: the run has no name. */
  readonly set: (id: DeploymentId, name: string | null) => void
  readonly of: (name: string) => ReadonlyArray<DeploymentId>
}

export const makeRunIndex = (): RunIndex => {
  const names = new Map<DeploymentId, string>()
  const byName = new Map<string, Set<DeploymentId>>()
  const set = (id: DeploymentId, name: string | null): void => {
    const before = names.get(id)
    if (before === (name ?? undefined)) return
    const sharers = before === undefined ? undefined : byName.get(before)
    if (before !== undefined && sharers?.delete(id) === true && sharers.size === 0) byName.delete(before)
    if (name === null) {
      names.delete(id)
      return
    }
    names.set(id, name)
    byName.set(name, (byName.get(name) ?? new Set()).add(id))
  }
  return {
    set,
    of: (name) => [...(byName.get(name) ?? [])],
    remembers: (id) => names.has(id),
    forget: (id) => Effect.sync(() => set(id, null))
  }
}
