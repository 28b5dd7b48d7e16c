import type { DeploymentId } from "@seatrial/domain"

/** The most Jobs of references at once. */
export interface ReferenceLimits {
  readonly inAll: number
  readonly perOrganization: number
}

/** A run that waits for the Job of that name. */
export interface WaitingReference {
  readonly id: DeploymentId
  readonly name: string
  readonly organization: string
}

export interface ReferenceLoad {
  /** The organizations that use each Job, for the Jobs that have not ended or are about to be created, by name. */
  readonly jobs: ReadonlyMap<string, ReadonlySet<string>>
  readonly waiting: ReadonlyArray<WaitingReference>
  /** The Jobs that got no node lately. They go after the others. */
  readonly resting: ReadonlySet<string>
}

/** The number of Jobs of each organization. A Job counts for each organization that uses it. */
const countJobs = (jobs: ReferenceLoad["jobs"]): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const organization of [...jobs.values()].flatMap((users) => [...users])) counts.set(organization, (counts.get(organization) ?? 0) + 1)
  return counts
}

const isOlder = (one: WaitingReference, other: WaitingReference): boolean => one.id < other.id

/**
 * The runs that may create their Jobs now, in order. The organization with the fewest Jobs goes first, and its oldest run.
 * Runs with the same Job get one turn. Jobs that rest go last.
 */
export const nextReferences = ({ jobs, resting, waiting }: ReferenceLoad, { inAll, perOrganization }: ReferenceLimits): ReadonlyArray<DeploymentId> => {
  const free = inAll - jobs.size
  if (free <= 0) return []
  const counts = countJobs(jobs)
  const countOf = ({ organization }: WaitingReference): number => counts.get(organization) ?? 0
  const goesFirst = (one: WaitingReference, other: WaitingReference): boolean =>
    resting.has(one.name) === resting.has(other.name)
      ? countOf(one) < countOf(other) || (countOf(one) === countOf(other) && isOlder(one, other))
      : resting.has(other.name)
  const names = new Set(jobs.keys())
  const next: Array<DeploymentId> = []
  while (next.length < free) {
    let first: WaitingReference | null = null
    for (const each of waiting) {
      if (names.has(each.name) || countOf(each) >= perOrganization) continue
      if (first === null || goesFirst(each, first)) first = each
    }
    if (first === null) break
    next.push(first.id)
    names.add(first.name)
    counts.set(first.organization, countOf(first) + 1)
  }
  return next
}
