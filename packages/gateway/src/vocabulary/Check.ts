import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"

/** Gives what goes to the engine, undefined for what is accepted and does not; refuses all else by throwing a `Refusal`. */
export type Check = (value: unknown, at: Checking) => unknown

export const text: Check = (value, at) => (typeof value === "string" ? value : at.invalid("expected a string"))

export const boolean: Check = (value, at) => (typeof value === "boolean" ? value : at.invalid("expected true or false"))

export const nonEmptyText: Check = (value, at) => (typeof value === "string" && value !== "" ? value : at.invalid("expected a string that is not empty"))

/** A whole number of that range. */
export const integer =
  (minimum: number, maximum: number, expected = `expected a whole number from ${minimum} to ${maximum}`): Check =>
  (value, at) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= minimum && value <= maximum ? value : at.invalid(expected)

/** A number of that range. */
export const number =
  (minimum: number, maximum: number): Check =>
  (value, at) =>
    typeof value === "number" && value >= minimum && value <= maximum ? value : at.invalid(`expected a number from ${minimum} to ${maximum}`)

/** A number above `minimum`. */
export const numberAbove =
  (minimum: number, maximum: number): Check =>
  (value, at) =>
    typeof value === "number" && value > minimum && value <= maximum ? value : at.invalid(`expected a number above ${minimum}, ${maximum} at most`)

/** The type is looked at, and nothing else: what it says has no effect, and is not sent. */
export const advisory =
  (check: Check): Check =>
  (value, at) => {
    check(value, at)
    return undefined
  }

/** The only values that have the effect that is served, which is none: they are not sent. */
export const only =
  (...values: ReadonlyArray<string | number | boolean>): Check =>
  (value, at) =>
    values.some((one) => one === value) ? undefined : at.unsupportedValue(`only ${values.map((one) => JSON.stringify(one)).join(" or ")} is served`)

/** A real member of the API that no model is served with. */
export const never: Check = (_, at) => at.unsupported()

/** What clients of the API put beside what they were answered, which says the same once more, and send back with it. */
export const sentBack: Check = () => undefined

/** Any JSON object: it is a schema, or means something to the caller only. */
export const anyMembers: Check = (value, at) => (isMembers(value) ? value : at.invalid("expected an object"))

/** Each item of a list of so many. */
export const list =
  (item: Check, minimum: number, maximum: number): Check =>
  (value, at) => {
    if (!Array.isArray(value)) return at.invalid("expected a list")
    if (value.length < minimum || value.length > maximum) return at.invalid(`expected a list of ${minimum} to ${maximum}`)
    return value.map((one: unknown, index) => at.within(index, item, one))
  }

export type Members = Readonly<Record<string, Check>>

/** An object of these members and no others, where null counts as absent. `required` must be there. */
export const members = (fields: Members, required: ReadonlyArray<string> = []): ((value: unknown, at: Checking) => Record<string, unknown>) => {
  const checks = new Map(Object.entries(fields))
  return (value, at) => {
    if (!isMembers(value)) return at.invalid("expected an object")
    const kept: Record<string, unknown> = {}
    for (const name of Object.keys(value)) {
      const given = value[name]
      if (given === null) continue
      const check = checks.get(name)
      if (check === undefined) return at.unknown(name)
      const checked = at.within(name, check, given)
      if (checked !== undefined) kept[name] = checked
    }
    for (const name of required) if (value[name] == null) return at.invalid("is required", name)
    return kept
  }
}

/** An object of one of several kinds, which its member `name` tells. */
export const variant =
  (name: string, kinds: Readonly<Record<string, Check>>): Check =>
  (value, at) => {
    if (!isMembers(value)) return at.invalid("expected an object")
    const kind = value[name]
    if (kind == null) return at.invalid("is required", name)
    if (typeof kind !== "string") return at.invalid("expected a string", name)
    const check = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
    return check === undefined ? at.unsupportedValue(`only ${Object.keys(kinds).join(" or ")} is served`, name) : check(value, at)
  }
