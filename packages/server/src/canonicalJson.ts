import { createHash } from "node:crypto"

const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`
}

/** SHA-256 (lower-case hexadecimal) of a JSON value with sorted members, so that the order on the wire does not matter. */
export const inputHash = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex")
