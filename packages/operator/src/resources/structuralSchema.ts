import { type JsonSchema, Predicate, Schema } from "effect"

const keywords = new Set([
  "type",
  "description",
  "default",
  "enum",
  "format",
  "pattern",
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "maxProperties",
  "required"
])

/** Bounds that only state JavaScript's range of integers. */
const isNoBound = (value: unknown) => value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER

const convertAll = (schemas: Readonly<Record<PropertyKey, unknown>>) =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, convert(schema)]))

const convert = (schema: unknown): JsonSchema.JsonSchema => {
  if (!Predicate.isObject(schema)) throw new TypeError(`not a schema: ${JSON.stringify(schema)}`)
  const { allOf, anyOf, ...node } = schema
  if (anyOf !== undefined || "$ref" in node || "oneOf" in node || "not" in node) throw new TypeError(`not structural: ${JSON.stringify(schema)}`)
  const out: JsonSchema.JsonSchema = {}
  for (const [key, value] of [node, ...(Array.isArray(allOf) ? allOf : [])].flatMap((part) => Object.entries(part))) {
    if (key === "exclusiveMinimum") Object.assign(out, { minimum: value, exclusiveMinimum: true })
    else if (keywords.has(key) && !((key === "minimum" || key === "maximum") && isNoBound(value))) out[key] = value
  }
  if (typeof out.pattern === "string" && /\(\?[!=<]/.test(out.pattern)) throw new TypeError(`a look-around, which RE2 does not have: ${out.pattern}`)
  if (out.type === "integer") out.format = "int64"
  if (Predicate.isObject(node.properties)) out.properties = convertAll(node.properties)
  else if (Predicate.isObject(node.additionalProperties)) out.additionalProperties = convert(node.additionalProperties)
  else if (out.type === "object" || out.type === undefined) out["x-kubernetes-preserve-unknown-fields"] = true
  if (node.items !== undefined) out.items = convert(node.items)
  return out
}

/**
 * The structural OpenAPI 3 schema of a custom resource's field: no references, no unions, closed by pruning. Throws if
 * the schema contains something that a definition cannot express.
 */
export const structuralSchema = (schema: Schema.Constraint): JsonSchema.JsonSchema => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema)
  if (Object.keys(definitions).length > 0) throw new TypeError("a schema with references is not structural")
  return convert(root)
}
