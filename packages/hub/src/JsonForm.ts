import { JsonNumber } from "./JsonScanner.ts"

/** JSON as it was written: whether a number has a point is known. */
export type JsonValue = string | boolean | null | JsonNumber | ReadonlyArray<JsonValue> | JsonObject
export type JsonObject = ReadonlyMap<string, JsonValue>

/** Where a value has not the form, as a path within it (`""`: it has not itself); null where it has. */
export type JsonForm = (value: JsonValue) => string | null

export const isObject = (value: JsonValue): value is JsonObject => value instanceof Map
export const isList = (value: JsonValue): value is ReadonlyArray<JsonValue> => Array.isArray(value)

const form =
  (has: (value: JsonValue) => boolean): JsonForm =>
  (value) =>
    has(value) ? null : ""

/** An integer of Rust without a sign, up to a bound. Of more digits than are exact it is not told whether it is written without a point. */
const isUnsigned = (value: JsonValue, below: number) =>
  value instanceof JsonNumber && (value.whole || (Number.isInteger(value.value) && value.value >= 1e15)) && value.value < below

/** The forms that Rust's `serde` reads from JSON, by the names that they have there. */
export const bool = form((value) => typeof value === "boolean")
export const text = form((value) => typeof value === "string")
export const char = form((value) => typeof value === "string" && value !== "" && value.length <= 2 && [...value].length === 1)
export const u32 = form((value) => isUnsigned(value, 2 ** 32))
export const usize = form((value) => isUnsigned(value, 2 ** 64))
export const number = form((value) => value instanceof JsonNumber)
/** One of a few names; one without a content may be written as an object, too. */
export const name = (...names: ReadonlyArray<string>): JsonForm =>
  form((value) => {
    const [given, ...others] = isObject(value) ? value : []
    const named = given !== undefined && others.length === 0 && given[1] === null ? given[0] : value
    return typeof named === "string" && names.includes(named)
  })

/** Null, and with it a member that is missing, or this form. */
export const option =
  (of: JsonForm): JsonForm =>
  (value) =>
    value === null ? null : of(value)

/** A list of any length, each of this form. */
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

/** A list of exactly these. */
export const tuple =
  (...forms: ReadonlyArray<JsonForm>): JsonForm =>
  (value) =>
    isList(value) && value.length === forms.length && forms.every((of, at) => of(value[at] ?? null) === null) ? null : ""

/** An object of any names, each of this form. */
export const record =
  (of: JsonForm): JsonForm =>
  (value) =>
    isObject(value) && [...value.values()].every((member) => of(member) === null) ? null : ""

/** An object with these members and any others. `optional` ones may be missing. */
export const struct =
  (members: Readonly<Record<string, JsonForm>>, optional: Readonly<Record<string, JsonForm>> = {}): JsonForm =>
  (value) => {
    if (!isObject(value)) return ""
    for (const [member, of] of [...Object.entries(members), ...Object.entries(optional).filter(([one]) => value.has(one))]) {
      const given = value.get(member)
      const place = given === undefined ? "" : of(given)
      if (place !== null) return `.${member}${place}`
    }
    return null
  }

/** An object with one of these members alone. */
export const variant =
  (members: Readonly<Record<string, JsonForm>>): JsonForm =>
  (value) => {
    const [given, ...others] = isObject(value) ? value : []
    const of = given === undefined || others.length > 0 ? undefined : new Map(Object.entries(members)).get(given[0])
    return given === undefined || of === undefined ? "" : of(given[1])
  }

/** Any of these. */
export const either =
  (...forms: ReadonlyArray<JsonForm>): JsonForm =>
  (value) =>
    forms.some((of) => of(value) === null) ? null : ""
