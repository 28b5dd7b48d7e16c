import { at, equal, fieldsAt, isList, isObject, type Json, type JsonObject, listAt, put, textAt, without } from "./Json.ts"
import type { Cause } from "./KubeStatus.ts"

// CEL rules (x-kubernetes-validations) are not evaluated, so that a real API server refuses more than this one.

const preserves = (schema: JsonObject): boolean => schema["x-kubernetes-preserve-unknown-fields"] === true

/** The schema of a field: declared, of an embedded object, or of additional properties. */
const fieldSchema = (schema: JsonObject, name: string): JsonObject | undefined => {
  const declared = at(schema, "properties", name)
  if (isObject(declared)) return declared
  const embedded = schema["x-kubernetes-embedded-resource"] === true && (name === "apiVersion" || name === "kind" || name === "metadata")
  if (embedded) return { "x-kubernetes-preserve-unknown-fields": true }
  const rest = schema.additionalProperties
  return isObject(rest) ? rest : rest === true || preserves(schema) ? { "x-kubernetes-preserve-unknown-fields": true } : undefined
}

/**
 * Fills in the defaults of absent fields, including fields inside defaults. A null that is not allowed counts as
 * absent.
 */
export const withDefaults = (schema: JsonObject, value: Json): Json => {
  if (isList(value)) {
    const items = fieldsAt(schema, "items")
    return value.map((item) => withDefaults(items, item))
  }
  if (!isObject(value)) return value
  let result = value
  for (const [name, field] of Object.entries(fieldsAt(schema, "properties"))) {
    const fallback = at(field, "default")
    const missing = !Object.hasOwn(value, name) || (value[name] === null && at(field, "nullable") !== true)
    if (missing && fallback !== undefined) result = put(result, [name], fallback)
    else if (value[name] === null && missing && textAt(field, "type") !== "") result = without(result, name)
  }
  return Object.fromEntries(
    Object.entries(result).map(([name, item]) => {
      const field = fieldSchema(schema, name)
      return [name, field === undefined ? item : withDefaults(field, item)]
    })
  )
}

/** Removes fields that the schema does not contain, and reports their paths to `unknown`. */
export const pruned = (schema: JsonObject, value: Json, path: string, unknown: (path: string) => void): Json => {
  if (isList(value)) {
    const items = fieldsAt(schema, "items")
    return value.map((item, position) => pruned(items, item, `${path}[${position}]`, unknown))
  }
  if (!isObject(value)) return value
  const known: Record<string, Json> = {}
  for (const [name, item] of Object.entries(value)) {
    const inner = path === "" ? name : `${path}.${name}`
    const field = fieldSchema(schema, name)
    if (field === undefined) unknown(inner)
    else known[name] = pruned(field, item, inner, unknown)
  }
  return known
}

const typeOf = (value: Json): string =>
  value === null ? "null" : isList(value) ? "array" : typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value

const hasType = (value: Json, type: string): boolean => type === "" || typeOf(value) === type || (type === "number" && typeof value === "number")

const display = (value: Json): string => (isObject(value) || isList(value) ? JSON.stringify(value) : typeof value === "string" ? `"${value}"` : String(value))

type Bound = readonly [name: string, breaks: (value: Json, limit: Json) => boolean, says: (limit: Json) => string]
const numbers = (compare: (value: number, limit: number) => boolean) => (value: Json, limit: Json) =>
  typeof value === "number" && typeof limit === "number" && compare(value, limit)
const sizes = (size: (value: Json) => number | undefined, compare: (value: number, limit: number) => boolean) => (value: Json, limit: Json) => {
  const length = size(value)
  return length !== undefined && typeof limit === "number" && compare(length, limit)
}
const characters = (value: Json) => (typeof value === "string" ? [...value].length : undefined)
const items = (value: Json) => (isList(value) ? value.length : undefined)
const properties = (value: Json) => (isObject(value) ? Object.keys(value).length : undefined)

const bounds: ReadonlyArray<Bound> = [
  ["minLength", sizes(characters, (length, limit) => length < limit), (limit) => `should be at least ${limit} chars long`],
  ["minItems", sizes(items, (length, limit) => length < limit), (limit) => `should have at least ${limit} items`],
  ["minProperties", sizes(properties, (length, limit) => length < limit), (limit) => `should have at least ${limit} properties`],
  [
    "pattern",
    (value, limit) => typeof value === "string" && typeof limit === "string" && !new RegExp(limit, "u").test(value),
    (limit) => `should match '${limit}'`
  ],
  ["multipleOf", numbers((value, limit) => !Number.isInteger(value / limit)), (limit) => `should be a multiple of ${limit}`]
]

const tooLong: ReadonlyArray<readonly [name: string, size: (value: Json) => number | undefined, unit: string]> = [
  ["maxLength", characters, "characters"],
  ["maxItems", items, "items"],
  ["maxProperties", properties, "items"]
]

const date = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** A value, its schema, and its path for messages. */
interface Subject {
  readonly schema: JsonObject
  readonly value: Json
  readonly path: string
}

/** The problem of the value itself, without the values inside it. */
type Rule = (subject: Subject) => ReadonlyArray<Cause>

const fieldName = (path: string): string => (path === "" ? "<nil>" : path)

const invalid = ({ path, value }: Subject, text: string, reason = "FieldValueInvalid"): Cause => ({
  reason,
  field: fieldName(path),
  message: `Invalid value: ${display(value)}: ${path === "" ? "" : `${path} `}in body ${text}`
})

const isIntOrString = (schema: JsonObject): boolean => schema["x-kubernetes-int-or-string"] === true

const hasDeclaredType = (schema: JsonObject, value: Json): boolean =>
  isIntOrString(schema) ? typeof value === "string" || typeOf(value) === "integer" : hasType(value, textAt(schema, "type"))

const wrongType = ({ path, schema, value }: Subject): Cause => {
  const type = isIntOrString(schema) ? "integer,string" : textAt(schema, "type")
  return {
    reason: "FieldValueTypeInvalid",
    field: fieldName(path),
    message: `Invalid value: "${typeOf(value)}": ${path} in body must be of type ${type}: "${typeOf(value)}"`
  }
}

const unsupportedValue: Rule = ({ path, schema, value }) => {
  const allowed = listAt(schema, "enum")
  if (allowed.length === 0 || allowed.some((one) => equal(one, value))) return []
  const message = `Unsupported value: ${display(value)}: supported values: ${allowed.map(display).join(", ")}`
  return [{ reason: "FieldValueNotSupported", field: path, message }]
}

const brokenBounds: Rule = (subject) =>
  bounds.flatMap(([name, breaks, text]) => {
    const limit = subject.schema[name]
    return limit !== undefined && breaks(subject.value, limit) ? [invalid(subject, text(limit))] : []
  })

const brokenSizes: Rule = ({ path, schema, value }) =>
  tooLong.flatMap(([name, size, unit]): ReadonlyArray<Cause> => {
    const limit = schema[name]
    const length = size(value)
    if (typeof limit !== "number" || length === undefined || length <= limit) return []
    return unit === "characters"
      ? [{ reason: "FieldValueTooLong", field: path, message: `Too long: may not be more than ${limit} bytes` }]
      : [{ reason: "FieldValueTooMany", field: path, message: `Too many: ${length}: must have at most ${limit} items` }]
  })

const belowMinimum: Rule = (subject) => {
  const { schema, value } = subject
  const { minimum } = schema
  if (typeof value !== "number" || typeof minimum !== "number") return []
  const isOpen = schema.exclusiveMinimum === true
  if (isOpen ? value > minimum : value >= minimum) return []
  return [invalid(subject, `should be greater than ${isOpen ? "" : "or equal to "}${minimum}`)]
}

const aboveMaximum: Rule = (subject) => {
  const { schema, value } = subject
  const { maximum } = schema
  if (typeof value !== "number" || typeof maximum !== "number") return []
  const isOpen = schema.exclusiveMaximum === true
  if (isOpen ? value < maximum : value <= maximum) return []
  return [invalid(subject, `should be less than ${isOpen ? "" : "or equal to "}${maximum}`)]
}

const wrongFormat: Rule = (subject) => {
  const { schema, value } = subject
  if (schema.format !== "date-time" || typeof value !== "string" || date.test(value)) return []
  return [invalid(subject, `must be of type date-time: ${display(value)}`, "FieldValueTypeInvalid")]
}

const matches = (branch: Json, { path, value }: Subject): boolean => isObject(branch) && violations(branch, value, path).length === 0

const allOf: Rule = ({ path, schema, value }) => listAt(schema, "allOf").flatMap((branch) => (isObject(branch) ? violations(branch, value, path) : []))

const anyOf: Rule = (subject) => {
  const branches = listAt(subject.schema, "anyOf")
  if (branches.length === 0 || branches.some((branch) => matches(branch, subject))) return []
  return [invalid(subject, "must validate at least one schema (anyOf)")]
}

const oneOf: Rule = (subject) => {
  const branches = listAt(subject.schema, "oneOf")
  if (branches.length === 0 || branches.filter((branch) => matches(branch, subject)).length === 1) return []
  return [invalid(subject, "must validate one and only one schema (oneOf)")]
}

const not: Rule = (subject) => {
  const branch = subject.schema.not
  return branch !== undefined && matches(branch, subject) ? [invalid(subject, "must not validate the schema (not)")] : []
}

const rules: ReadonlyArray<Rule> = [unsupportedValue, brokenBounds, brokenSizes, belowMinimum, aboveMaximum, wrongFormat, allOf, anyOf, oneOf, not]

/** All violations of the schema, with the messages of a real API server. */
export const violations = (schema: JsonObject, value: Json, path: string): ReadonlyArray<Cause> => {
  if (value === null && schema.nullable === true) return []
  const subject = { schema, value, path }
  if (!hasDeclaredType(schema, value)) return [wrongType(subject)]
  return [...rules.flatMap((rule) => rule(subject)), ...inside(schema, value, path)]
}

const inside = (schema: JsonObject, value: Json, path: string): ReadonlyArray<Cause> => {
  if (isList(value)) {
    const keys = listAt(schema, "x-kubernetes-list-map-keys").filter((key) => typeof key === "string")
    const identities = value.map((item) => JSON.stringify(keys.length > 0 ? keys.map((key) => at(item, key)) : item))
    const unique = keys.length > 0 || schema["x-kubernetes-list-type"] === "set"
    return value.flatMap((item, position) => {
      const inner = `${path}[${position}]`
      const repeated = unique && identities.indexOf(identities[position] ?? "") !== position
      const twice: ReadonlyArray<Cause> = repeated ? [{ reason: "FieldValueDuplicate", field: inner, message: `Duplicate value: ${display(item)}` }] : []
      return [...twice, ...violations(fieldsAt(schema, "items"), item, inner)]
    })
  }
  if (!isObject(value)) return []
  const dot = path === "" ? "" : `${path}.`
  const missing = listAt(schema, "required").filter((name) => typeof name === "string" && !Object.hasOwn(value, name))
  return [
    ...missing.map((name): Cause => ({ reason: "FieldValueRequired", field: `${dot}${name}`, message: "Required value" })),
    ...Object.entries(value).flatMap(([name, item]) => {
      const field = fieldSchema(schema, name)
      return field === undefined || (item === null && !Object.hasOwn(field, "type")) ? [] : violations(field, item, `${dot}${name}`)
    })
  ]
}
