import { anyMembers, type Check } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"

/** Limits of all schemas of a request together. An engine compiles them into a grammar, while the requests of others wait. */
export const mostSchemaValues = 10_000
export const mostSchemaCharacters = 120_000

/** Members of a schema that describe it and are not part of the grammar. */
const describing: ReadonlySet<string> = new Set(["description", "title", "$comment", "default", "examples"])

/** Counts the values, and the characters of names and texts, except those of descriptions. */
const countSchema = (value: unknown, at: Checking): void => {
  at.schemas.values++
  if (typeof value === "string") at.schemas.characters += value.length
  else if (Array.isArray(value)) for (const one of value) countSchema(one, at)
  else if (isMembers(value)) {
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner === "string" && describing.has(name)) continue
      at.schemas.characters += name.length
      countSchema(inner, at)
    }
  }
}

/** A JSON Schema, or the parameters of a tool. */
export const jsonSchema: Check = (value, at) => {
  const schema = anyMembers(value, at)
  countSchema(schema, at)
  const { characters, values } = at.schemas
  if (values > mostSchemaValues) return at.invalid(`the schemas of a request may have at most ${mostSchemaValues} values together`)
  if (characters > mostSchemaCharacters)
    return at.invalid(`the names and texts in the schemas of a request, without descriptions, may have at most ${mostSchemaCharacters} characters together`)
  return schema
}
