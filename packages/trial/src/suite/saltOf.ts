import { createHash } from "node:crypto"

/** A salt of the form that the gateway sends for an organization, so that no engine can tell a trial by it. */
export const saltOf = (...parts: ReadonlyArray<string | number>): string => createHash("sha256").update(parts.join("/")).digest("base64url")
