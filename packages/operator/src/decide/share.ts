/** What is asked of the pool for one run. Engines are those of its host class. */
export interface Claim {
  /** Slug of the run's organisation. */
  readonly organization: string
  /** Engines that would find GPUs now. */
  readonly free: number
  /** Engines that organisations have set aside and do not use, by slug. */
  readonly reserved: ReadonlyMap<string, number>
  /** Engines' worth of these GPUs that is set aside on other host classes of the same nodes. */
  readonly elsewhere: number
  /** Older runs that wait for the same host class, by their organisations' slugs. */
  readonly older: ReadonlyMap<string, number>
}

/** Engines that a run may take, and how many of the older runs take theirs from the same before it. It may go on where the first is more than the second. */
export interface Share {
  readonly freeSlots: number
  readonly ahead: number
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0)

/**
 * A reservation is used first: by the organisation's own runs in their order, before they count on what is for all. What others have set aside and do not use is
 * nobody else's, and runs that have it do not stand in the others' way.
 */
export const share = ({ elsewhere, free, older, organization, reserved }: Claim): Share => {
  const own = Math.min(reserved.get(organization) ?? 0, free)
  const ownOlder = older.get(organization) ?? 0
  if (own > ownOlder) return { freeSlots: own, ahead: ownOlder }
  const beyond = [...older].map(([slug, count]) => Math.max(0, count - (reserved.get(slug) ?? 0)))
  return { freeSlots: free - sum(reserved.values()) - elsewhere, ahead: sum(beyond) }
}
