import { createHash } from "node:crypto"
import { sortedJson } from "@seatrial/domain"

/**
 * SHA-256 (lower-case hexadecimal) of a JSON value with sorted members, so that the order on the wire does not matter.
 */
export const inputHash = (value: unknown): string => createHash("sha256").update(sortedJson(value)).digest("hex")
