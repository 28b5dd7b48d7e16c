import { invalidBody, invalidParameter, type Refusal } from "../refusals.ts"

declare global {
  // Node has them and the library of types does not yet: a number's own digits, and a value that is serialised as those.
  interface JSON {
    parse(text: string, reviver: (this: unknown, name: string, value: unknown, context: { readonly source?: string }) => unknown): unknown
    rawJSON(text: string): object
    isRawJSON(value: unknown): boolean
  }
}

/** A body whose model is named, and whose other members are not checked yet. */
export interface ParsedBody {
  readonly model: string
  readonly members: Readonly<Record<string, unknown>>
}

const maxDepth = 64
/** Objects and lists, which cost far more to check than they cost to send. */
const maxContainers = 100_000

export const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

/** What a number may lose on its way through: more digits than it holds, or an exponent beyond it. It begins with a digit, of which texts have few to look behind. */
const inexact = /\d(?:\d{15}|[eE][+-]?\d{3})/

class NumberTooLarge extends Error {}

/** Numbers as they are, but whole ones that a number does not hold: those keep their digits. */
const exactly = (_: string, value: unknown, { source }: { readonly source?: string }): unknown => {
  if (typeof value !== "number" || source === undefined) return value
  if (!Number.isFinite(value)) throw new NumberTooLarge()
  return Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? JSON.rawJSON(source) : value
}

/** Whether a value is nested no deeper and has no more parts than is allowed. */
export const isWithinLimits = (body: object): boolean => {
  let containers = 0
  const look = (value: object | null, depth: number): boolean => {
    if (value === null) return true
    if (depth > maxDepth || ++containers > maxContainers) return false
    for (const member of Array.isArray(value) ? value : Object.values(value)) {
      if (typeof member === "object" && !look(member, depth + 1)) return false
    }
    return true
  }
  return look(body, 1)
}

/** Reads the text of a body as far as the name of its model. */
export const parseBody = (text: string): ParsedBody | Refusal => {
  let members: unknown
  try {
    members = inexact.test(text) ? JSON.parse(text, exactly) : JSON.parse(text)
  } catch (cause) {
    return invalidBody(cause instanceof NumberTooLarge ? "The body has a number that is too large." : "The body is not valid JSON.")
  }
  if (!isMembers(members)) return invalidBody("The body must be a JSON object.")
  if (!isWithinLimits(members)) return invalidBody(`The body may be nested ${maxDepth} deep and have ${maxContainers} objects and lists at most.`)
  const model = members.model ?? undefined
  if (typeof model === "string" && model.length >= 1 && model.length <= 256) return { model, members }
  return invalidParameter(model === undefined ? "model is required." : "model must be a string of 1 to 256 characters.", "model")
}

/** Whether the caller asked for a stream, as far as the body tells, for the record of a refused request. */
export const streamOf = ({ stream }: Readonly<Record<string, unknown>>): boolean | null => (typeof stream === "boolean" ? stream : null)
