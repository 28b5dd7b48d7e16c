import { isAscii, isUtf8 } from "node:buffer"
import { randomBytes } from "node:crypto"
import { JsonExcess, type JsonLimits, scanJson } from "@seatrial/http"
import { invalidBody, invalidParameter, type Refusal } from "../refusals.ts"

declare global {
  // Supported by Node, but missing in the type library: a value that serializes as exactly this text.
  interface JSON {
    rawJSON(text: string): object
    isRawJSON(value: unknown): boolean
  }
}

/** Limits of a body, and of each JSON text inside of one. */
export const jsonLimits = {
  depth: 64,
  containers: 100_000,
  parts: 1_000_000,
  members: 250_000,
  numbers: { numberLength: 1_024, longIntegers: 10_000 }
} as const satisfies JsonLimits

/** A body with a valid model name. Its other members are unchecked. */
export interface ParsedBody {
  readonly model: string
  readonly members: Readonly<Record<string, unknown>>
}

export const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

/**
 * Replaces strings that begin with `mark` by numbers. The recursion is limited, because `scanJson` has limited the
 * depth.
 */
const restore = (value: unknown, mark: string): unknown => {
  if (typeof value === "string") return value.startsWith(mark) ? JSON.rawJSON(value.slice(mark.length)) : value
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const element: unknown = value[index]
      // A list may have a million numbers, which stay as they are.
      if (typeof element === "string" || typeof element === "object") value[index] = restore(element, mark)
    }
  } else if (typeof value === "object" && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      const restored = restore(member, mark)
      if (restored !== member) Reflect.set(value, name, restored)
    }
  }
  return value
}

/**
 * Parses a text with integers that a double cannot represent. Each is parsed as a string with an unpredictable mark and
 * then becomes a number that keeps its digits. A reviver would take twenty times as long, for every value of the body.
 */
const parseLong = (bytes: Buffer, text: (start: number, end: number) => string, longIntegers: ReadonlyArray<number>): unknown => {
  const mark = `${randomBytes(16).toString("hex")}:`
  const parts: Array<string> = []
  let from = 0
  for (let index = 0; index < longIntegers.length; index += 2) {
    const start = longIntegers[index] ?? 0
    const end = longIntegers[index + 1] ?? 0
    parts.push(text(from, start), `"${mark}${bytes.toString("latin1", start, end)}"`)
    from = end
  }
  parts.push(text(from, bytes.length))
  return restore(JSON.parse(parts.join("")), mark)
}

const parseJson = (bytes: Buffer, longIntegers: ReadonlyArray<number>): unknown => {
  // For ASCII, Latin-1 gives the same text at lower cost.
  const encoding = isAscii(bytes) ? "latin1" : "utf8"
  const text = (start: number, end: number) => bytes.toString(encoding, start, end)
  return longIntegers.length === 0 ? JSON.parse(text(0, bytes.length)) : parseLong(bytes, text, longIntegers)
}

/** Parses a body and checks the name of its model. */
export const parseBody = (bytes: Buffer): ParsedBody | Refusal => {
  const longIntegers = scanJson(bytes, jsonLimits)
  if (longIntegers instanceof JsonExcess) return invalidBody(longIntegers.message)
  if (!isUtf8(bytes)) return invalidBody("The body is not valid UTF-8.")
  let members: unknown
  try {
    members = parseJson(bytes, longIntegers)
  } catch {
    return invalidBody("The body is not valid JSON.")
  }
  if (!isMembers(members)) return invalidBody("The body must be a JSON object.")
  const model = members.model ?? undefined
  if (typeof model === "string" && model.length >= 1 && model.length <= 256) return { model, members }
  return invalidParameter(model === undefined ? "model is required." : "model must be a string of 1 to 256 characters.", "model")
}

/** Whether the caller asked for a stream, for the record of a refused request; null if the body does not say. */
export const streamOf = ({ stream }: Readonly<Record<string, unknown>>): boolean | null => (typeof stream === "boolean" ? stream : null)
