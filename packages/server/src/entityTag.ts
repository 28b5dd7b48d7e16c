import { createHash } from "node:crypto"

/** The strong entity tag of the content. */
export const tagOf = (bytes: Uint8Array): string => `"${createHash("sha256").update(bytes).digest("base64url")}"`

/** Whether `If-None-Match` contains the tag. Uses weak comparison. A malformed header matches nothing. */
export const namesTag = (header: string | undefined, etag: string): boolean =>
  header !== undefined && (header.trim() === "*" || [...header.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, tag]) => tag === etag))
