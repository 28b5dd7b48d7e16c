import { Schema } from "effect"

/** What a terminal obeys instead of showing it: control characters, line separators, and those that turn the direction of text. */
const unsafe = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Text as a terminal may have it: what it would obey is written as `\u001b`. */
export const escapeUnsafe = (text: string): string => text.replace(unsafe, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** JSON of a value, two spaces a level, that is safe to show as it is. */
export const safeJson = (value: unknown): string => JSON.stringify(value, null, 2).split("\n").map(escapeUnsafe).join("\n")

/** A name or note that people will read: not empty, and nothing in it that a terminal obeys. */
export const PlainText = Schema.String.check(
  Schema.isPattern(/\S/u, { message: "Expected some text" }),
  Schema.makeFilter((text) => escapeUnsafe(text) === text, { message: "Expected text without control characters" })
)
