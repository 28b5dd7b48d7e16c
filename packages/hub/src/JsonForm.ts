import { JsonNumber } from "./JsonScanner.ts"

/** A parsed JSON value that preserves whether a number has a decimal point. */
export type JsonValue = string | boolean | null | JsonNumber | ReadonlyArray<JsonValue> | JsonObject
export type JsonObject = ReadonlyMap<string, JsonValue>

/**
 * Validates a value. Returns null if it is valid, otherwise the path of the invalid value within it (`""`: the value
 * itself).
 */
export type JsonForm = (value: JsonValue) => string | null

export const isObject = (value: JsonValue): value is JsonObject => value instanceof Map
export const isList = (value: JsonValue): value is ReadonlyArray<JsonValue> => Array.isArray(value)

const form =
  (has: (value: JsonValue) => boolean): JsonForm =>
  (value) =>
    has(value) ? null : ""

/**
 * An unsigned integer of Rust below a bound. For a number with more digits than are exact, a decimal point is not
 * detected.
 */
const isUnsigned = (value: JsonValue, below: number) =>
  value instanceof JsonNumber && (value.isInteger || (Number.isInteger(value.value) && value.value >= 1e15)) && value.value < below

/** The types that Rust's `serde` reads from JSON, under their names in Rust. */
export const bool = form((value) => typeof value === "boolean")
export const text = form((value) => typeof value === "string")
export const char = form((value) => typeof value === "string" && value !== "" && value.length <= 2 && [...value].length === 1)
export const u32 = form((value) => isUnsigned(value, 2 ** 32))
export const usize = form((value) => isUnsigned(value, 2 ** 64))
export const number = form((value) => value instanceof JsonNumber)
/** One of a few names. A name without content may also be written as an object. */
export const name = (...names: ReadonlyArray<string>): JsonForm =>
  form((value) => {
    const [firstEntry, ...rest] = isObject(value) ? value : []
    const enumName = firstEntry !== undefined && rest.length === 0 && firstEntry[1] === null ? firstEntry[0] : value
    return typeof enumName === "string" && names.includes(enumName)
  })

/** This form, null, or a missing member. */
export const option =
  (of: JsonForm): JsonForm =>
  (value) =>
    value === null ? null : of(value)

/** A list of any length with elements of this form. */
export const list =
  (of: JsonForm): JsonForm =>
  (value) => {
    if (!isList(value)) return ""
    for (const [at, item] of value.entries()) {
      const place = of(item)
      if (place !== null) return `[${at}]${place}`
    }
    return null
  }

/** A list of exactly these forms. */
export const tuple =
  (...forms: ReadonlyArray<JsonForm>): JsonForm =>
  (value) =>
    isList(value) && value.length === forms.length && forms.every((of, at) => of(value[at] ?? null) === null) ? null : ""

/** An object with any names and values of this form. */
export const record =
  (of: JsonForm): JsonForm =>
  (value) =>
    isObject(value) && [...value.values()].every((member) => of(member) === null) ? null : ""

/** An object with these members and any others. Members in `optional` may be missing. */
export const struct =
  (members: Readonly<Record<string, JsonForm>>, optional: Readonly<Record<string, JsonForm>> = {}): JsonForm =>
  (value) => {
    if (!isObject(value)) return ""
    for (const [member, of] of [...Object.entries(members), ...Object.entries(optional).filter(([one]) => value.has(one))]) {
      const memberValue = value.get(member)
      const place = memberValue === undefined ? "" : of(memberValue)
      if (place !== null) return `.${member}${place}`
    }
    return null
  }

/** An object with exactly one of these members. */
export const variant =
  (members: Readonly<Record<string, JsonForm>>): JsonForm =>
  (value) => {
    const [firstEntry, ...rest] = isObject(value) ? value : []
    const of = firstEntry === undefined || rest.length > 0 ? undefined : new Map(Object.entries(members)).get(firstEntry[0])
    return firstEntry === undefined || of === undefined ? "" : of(firstEntry[1])
  }

/** Any of these forms. */
export const either =
  (...forms: ReadonlyArray<JsonForm>): JsonForm =>
  (value) =>
    forms.some((of) => of(value) === null) ? null : ""
