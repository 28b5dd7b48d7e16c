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

/** Keywords of JSON Schema that a definition cannot express. */
const unions = ["$ref", "anyOf", "oneOf", "not"]

type Node = Readonly<Record<PropertyKey, unknown>>

const refuseUnions = (schema: Node): void => {
  if (unions.some((keyword) => schema[keyword] !== undefined)) throw new TypeError(`not structural: ${JSON.stringify(schema)}`)
}

const refuseLookAround = ({ pattern }: Node): void => {
  if (typeof pattern === "string" && /\(\?[!=<]/.test(pattern)) throw new TypeError(`a look-around, which RE2 does not have: ${pattern}`)
}

/** The keyword as a definition writes it; none if the definition leaves it out. */
const keyword = (name: string, value: unknown): ReadonlyArray<readonly [name: string, value: unknown]> => {
  if (name === "exclusiveMinimum")
    return [
      ["minimum", value],
      ["exclusiveMinimum", true]
    ]
  return keywords.has(name) ? [[name, value]] : []
}

const convertAll = (schemas: Node) => Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, convert(schema)]))

/** The fields of an object. An object whose fields are not described keeps them. */
const fieldsOf = ({ additionalProperties, properties }: Node, type: unknown): JsonSchema.JsonSchema => {
  if (Predicate.isObject(properties)) return { properties: convertAll(properties) }
  if (Predicate.isObject(additionalProperties)) return { additionalProperties: convert(additionalProperties) }
  return type === "object" || type === undefined ? { "x-kubernetes-preserve-unknown-fields": true } : {}
}

const convert = (schema: unknown): JsonSchema.JsonSchema => {
  if (!Predicate.isObject(schema)) throw new TypeError(`not a schema: ${JSON.stringify(schema)}`)
  refuseUnions(schema)
  const { allOf, ...node } = schema
  const parts = [node, ...(Array.isArray(allOf) ? allOf : [])]
  const simple = Object.fromEntries(parts.flatMap((part) => Object.entries(part)).flatMap(([name, value]) => keyword(name, value)))
  refuseLookAround(simple)
  return {
    ...simple,
    ...(simple.type === "integer" ? { format: "int64" } : {}),
    ...fieldsOf(node, simple.type),
    ...(node.items === undefined ? {} : { items: convert(node.items) })
  }
}

/**
 * The structural OpenAPI 3 schema of a custom resource's field: no references, no unions, closed by pruning. Throws if
 * the schema contains something that a definition cannot express. Each integer has a minimum and a maximum that
 * JavaScript represents exactly, so that the API server refuses what the operator could not read.
 */
export const structuralSchema = (schema: Schema.Constraint): JsonSchema.JsonSchema => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema)
  if (Object.keys(definitions).length > 0) throw new TypeError("a schema with references is not structural")
  return convert(root)
}
