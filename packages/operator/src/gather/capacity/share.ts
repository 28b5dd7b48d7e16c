/** The inputs for one run's share of the pool. Engines are engines of its host class. */
export interface Claim {
  /** Slug of the run's organization. */
  readonly organization: string
  /** Engines for which GPUs are free. */
  readonly free: number
  /** Unused reserved engines, by slug of the organization. */
  readonly reserved: ReadonlyMap<string, number>
  /** Engines' worth of the same nodes' GPUs that other host classes have reserved. */
  readonly elsewhere: number
  /** Older runs that wait for the same host class, by slug of their organizations. */
  readonly older: ReadonlyMap<string, number>
}

/**
 * The engines that a run may take, and the older runs that take theirs from the same share first. The run continues if
 * `freeSlots` exceeds `ahead`.
 */
export interface Share {
  readonly freeSlots: number
  readonly ahead: number
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0)

/**
 * An organization uses its own reservation first, in the order of its runs. Only then do its runs count on the common
 * share. Unused reservations stay with their organizations, and runs with a reservation do not delay other runs.
 */
export const share = ({ elsewhere, free, older, organization, reserved }: Claim): Share => {
  const own = Math.min(reserved.get(organization) ?? 0, free)
  const ownOlder = older.get(organization) ?? 0
  if (own > ownOlder) return { freeSlots: own, ahead: ownOlder }
  const beyond = [...older].map(([slug, count]) => Math.max(0, count - (reserved.get(slug) ?? 0)))
  return { freeSlots: free - sum(reserved.values()) - elsewhere, ahead: sum(beyond) }
}
