import { createHash } from "node:crypto"

/** The strong entity tag of a content. */
export const tagOf = (bytes: Uint8Array): string => `"${createHash("sha256").update(bytes).digest("base64url")}"`

/** Whether an `If-None-Match` names the tag; tags are compared weakly, and what is no list of tags names none. */
export const namesTag = (header: string | undefined, etag: string): boolean =>
  header !== undefined && (header.trim() === "*" || [...header.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, tag]) => tag === etag))
