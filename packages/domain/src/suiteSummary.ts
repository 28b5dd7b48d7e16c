/**
 * Capability checks that did not confirm their capability, by name. `notReached`: the time was over. `notSeen`: the
 * check ran and observed nothing.
 */
export interface UnconfirmedChecks {
  readonly notReached: ReadonlyArray<string>
  readonly notSeen: ReadonlyArray<string>
}

// The contract's check rows have no field for these names, so clients read them from the text of the suite's row. The
// writer and the reader of that text are together here.

const listOf = (what: string, names: ReadonlyArray<string>): string => (names.length === 0 ? "" : `, ${names.length} ${what} (${names.join(", ")})`)

/** The part of the suite row's `detail` that lists these checks; empty if there are none. */
export const describeUnconfirmed = ({ notReached, notSeen }: UnconfirmedChecks): string => `${listOf("not reached", notReached)}${listOf("not seen", notSeen)}`

const written = /\d+ not (?:reached|seen) \([^)]*\)?/g

/** The lists that `describeUnconfirmed` wrote into a suite row's `detail`. The last one may be cut. */
export const readUnconfirmed = (detail: string): ReadonlyArray<string> => [...detail.matchAll(written)].map(([list]) => list)
