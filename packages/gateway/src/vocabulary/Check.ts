import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"

/** Returns the value for the engine; undefined if the value is accepted but not sent. Throws a `Refusal` otherwise. */
export type Check = (value: unknown, at: Checking) => unknown

export const text: Check = (value, at) => (typeof value === "string" ? value : at.invalid("expected a string"))

export const boolean: Check = (value, at) => (typeof value === "boolean" ? value : at.invalid("expected true or false"))

export const nonEmptyText: Check = (value, at) => (typeof value === "string" && value !== "" ? value : at.invalid("expected a non-empty string"))

/** An integer in a range. */
export const integer =
  (minimum: number, maximum: number, expected = `expected an integer from ${minimum} to ${maximum}`): Check =>
  (value, at) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= minimum && value <= maximum ? value : at.invalid(expected)

/** A number in a range. */
export const number =
  (minimum: number, maximum: number): Check =>
  (value, at) =>
    typeof value === "number" && value >= minimum && value <= maximum ? value : at.invalid(`expected a number from ${minimum} to ${maximum}`)

/** A number above `minimum`, up to `maximum`. */
export const numberAbove =
  (minimum: number, maximum: number): Check =>
  (value, at) =>
    typeof value === "number" && value > minimum && value <= maximum ? value : at.invalid(`expected a number above ${minimum} and at most ${maximum}`)

/** Checks the type only. The value has no effect and is not sent. */
export const advisory =
  (check: Check): Check =>
  (value, at) => {
    check(value, at)
    return undefined
  }

/** Accepts only the values that match the default behavior. They are not sent. */
export const only =
  (...values: ReadonlyArray<string | number | boolean>): Check =>
  (value, at) =>
    values.some((one) => one === value) ? undefined : at.unsupportedValue(`only ${values.map((one) => JSON.stringify(one)).join(" or ")} is supported`)

/** A member of the API that no model supports. */
export const never: Check = (_, at) => at.unsupported()

/** A redundant member that client libraries add to an answer and send back with it. It is ignored. */
export const sentBack: Check = () => undefined

/** Any JSON object, such as a schema or data that only the caller interprets. */
export const anyMembers: Check = (value, at) => (isMembers(value) ? value : at.invalid("expected an object"))

/** A list with `minimum` to `maximum` items. */
export const list =
  (item: Check, minimum: number, maximum: number): Check =>
  (value, at) => {
    if (!Array.isArray(value)) return at.invalid("expected a list")
    if (value.length < minimum || value.length > maximum) return at.invalid(`expected a list of ${minimum} to ${maximum} items`)
    return value.map((one: unknown, index) => at.within(index, item, one))
  }

export type Members = Readonly<Record<string, Check>>

/** An object with no other members than `fields`. Null counts as absent. The `required` members must be present. */
export const members = (fields: Members, required: ReadonlyArray<string> = []): ((value: unknown, at: Checking) => Record<string, unknown>) => {
  const checks = new Map(Object.entries(fields))
  return (value, at) => {
    if (!isMembers(value)) return at.invalid("expected an object")
    const result: Record<string, unknown> = {}
    for (const name of Object.keys(value)) {
      const member = value[name]
      if (member === null) continue
      const check = checks.get(name)
      if (check === undefined) return at.unknown(name)
      const checked = at.within(name, check, member)
      if (checked !== undefined) result[name] = checked
    }
    for (const name of required) if (value[name] == null) return at.invalid("is required", name)
    return result
  }
}

/** An object whose member `name` selects one of several kinds. */
export const variant =
  (name: string, kinds: Readonly<Record<string, Check>>): Check =>
  (value, at) => {
    if (!isMembers(value)) return at.invalid("expected an object")
    const kind = value[name]
    if (kind == null) return at.invalid("is required", name)
    if (typeof kind !== "string") return at.invalid("expected a string", name)
    const check = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
    return check === undefined ? at.unsupportedValue(`only ${Object.keys(kinds).join(" or ")} is supported`, name) : check(value, at)
  }
