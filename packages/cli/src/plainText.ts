import { Schema } from "effect"

/** Characters that a terminal interprets: control characters, line separators and text direction marks. */
const unsafe = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Text that is safe for a terminal: characters that it would interpret are written as, for example, `\u001b`. */
export const escapeUnsafe = (text: string): string => text.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** JSON of a value, indented by two spaces and safe for a terminal. */
export const safeJson = (value: unknown): string => JSON.stringify(value, null, 2).split("\n").map(escapeUnsafe).join("\n")

/** A name or note for people: not blank, and without characters that a terminal interprets. */
export const PlainText = Schema.String.check(
  Schema.isPattern(/\S/u, { message: "Expected some text" }),
  Schema.makeFilter((text) => escapeUnsafe(text) === text, { message: "Expected text without control characters" })
)
