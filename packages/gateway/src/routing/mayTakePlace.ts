/** An organization may hold so many times as many places as are free. */
const heldPerFree = 4

/**
 * Whether an organization that holds `held` of the places of a shared model may take one of the `free` ones. Some places always stay free for organizations that hold fewer: one
 * organization alone gets four fifths of all places, two get four ninths each, and of `n` places the first of another organization is free while fewer than `n / 4`
 * organizations hold all that they may. These are the dynamic thresholds of Choudhury and Hahne (IEEE/ACM Transactions on Networking 6(2), 1998), by which switches share memory.
 */
export const mayTakePlace = (held: number, free: number): boolean => held < heldPerFree * free
