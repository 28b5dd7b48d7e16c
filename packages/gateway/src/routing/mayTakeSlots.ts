/** Slots that an organization may hold for each free slot. */
const heldSlotsPerFreeSlot = 4

/**
 * Whether an organization that holds `held` slots of a public model may take `count` of the `free` slots. Some slots
 * always stay free for organizations that hold fewer: one organization alone gets four fifths of all slots, two get four
 * ninths each. With `n` slots, the first slot of a further organization is free while fewer than `n / 4` organizations
 * hold their maximum. These are the dynamic thresholds of Choudhury and Hahne (IEEE/ACM Transactions on Networking
 * 6(2), 1998), by which switches share memory.
 */
export const mayTakeSlots = (held: number, free: number, count = 1): boolean => held + count - 1 < heldSlotsPerFreeSlot * (free - count + 1)

/** The most slots that a request to a public model may take of an idle engine with `limit` slots. */
export const mostSlotsOfRequest = (limit: number): number => Math.max(1, Math.floor((heldSlotsPerFreeSlot * limit) / (heldSlotsPerFreeSlot + 1)))
