import { isDeepStrictEqual } from "node:util"
import type { Schema } from "effect"

export type Json = Schema.Json
export type JsonObject = Schema.JsonObject

export const isObject = (value: Json | undefined): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value)

export const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** The value at a path of field names; undefined if a step is missing. */
export const at = (value: Json | undefined, ...path: ReadonlyArray<string>): Json | undefined =>
  path.reduce<Json | undefined>((member, name) => (isObject(member) && Object.hasOwn(member, name) ? member[name] : undefined), value)

/** The string at a path; empty if there is none. */
export const textAt = (value: Json | undefined, ...path: ReadonlyArray<string>): string => {
  const result = at(value, ...path)
  return typeof result === "string" ? result : ""
}

/** The list at a path; empty if there is none. */
export const listAt = (value: Json | undefined, ...path: ReadonlyArray<string>): ReadonlyArray<Json> => {
  const result = at(value, ...path)
  return isList(result) ? result : []
}

/** The object at a path; empty if there is none. */
export const fieldsAt = (value: Json | undefined, ...path: ReadonlyArray<string>): JsonObject => {
  const result = at(value, ...path)
  return isObject(result) ? result : {}
}

/** A copy without these fields. */
export const without = (object: JsonObject, ...names: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

/** A copy with the value at the path. Missing objects are created, and `undefined` removes the field. */
export const put = (object: JsonObject, path: ReadonlyArray<string>, value: Json | undefined): JsonObject => {
  const [name, ...rest] = path
  if (name === undefined) return object
  if (rest.length > 0) return { ...object, [name]: put(fieldsAt(object, name), rest, value) }
  return value === undefined ? without(object, name) : { ...object, [name]: value }
}

export const equal = (a: Json | undefined, b: Json | undefined): boolean => isDeepStrictEqual(a, b)

/** A time in Kubernetes' format: whole seconds, UTC. */
export const rfc3339 = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, 19)}Z`
