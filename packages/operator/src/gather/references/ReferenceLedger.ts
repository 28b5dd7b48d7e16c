import { referenceLabel } from "../../resources/objectNames.ts"
import type { WatchedJob } from "../../resources/watched.ts"

/** Whether the Job has ended, successfully or not. */
export const hasJobEnded = ({ status }: WatchedJob): boolean =>
  status?.conditions?.some(({ status: is, type }) => (type === "Complete" || type === "Failed") && is === "True") === true

/** The Jobs of references, by name, kept current by the watch. */
export interface ReferenceLedger {
  /** Takes over the state of a Job of the operator's namespace; undefined: deleted. */
  readonly setJob: (name: string, job: WatchedJob | undefined) => void
  readonly has: (name: string) => boolean
  readonly names: () => ReadonlyArray<string>
  /** The Jobs that have not ended. Their pods compute, or wait for a node. */
  readonly active: () => ReadonlyArray<string>
}

export const makeReferenceLedger = (): ReferenceLedger => {
  const jobs = new Map<string, { readonly isActive: boolean }>()
  return {
    setJob: (name, job) => {
      if (job?.metadata.labels?.[referenceLabel] !== name) jobs.delete(name)
      else jobs.set(name, { isActive: job.metadata.deletionTimestamp === undefined && !hasJobEnded(job) })
    },
    has: (name) => jobs.has(name),
    names: () => [...jobs.keys()],
    active: () => [...jobs].flatMap(([name, { isActive }]) => (isActive ? name : []))
  }
}
