import { createHash } from "node:crypto"

const hashOf = (parts: ReadonlyArray<string | number>) => createHash("sha256").update(parts.join("/"))

/** A salt of the form that the gateway sends for an organization, so that no engine can tell a trial by it. */
export const saltOf = (...parts: ReadonlyArray<string | number>): string => hashOf(parts).digest("base64url")

/** Derives a seed from the seed of a trial, or from a commit. `use`: the purpose. */
export const seedOf = (seed: number | string, use: string): number => hashOf([seed, use]).digest().readUInt32BE(0)
