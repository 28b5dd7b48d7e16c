import { boolean, type Check, members, text } from "./Check.ts"
import { jsonSchema } from "./jsonSchema.ts"
import { isMembers } from "./parseBody.ts"
import { functionName } from "./tools.ts"

const plain = members({ type: text })
const withSchema = members(
  { type: text, json_schema: members({ name: functionName, description: text, schema: jsonSchema, strict: boolean }, ["name", "schema"]) },
  ["json_schema"]
)

/** `response_format`. The type `text` is the engine's default. */
export const responseFormat: Check = (value, at) => {
  if (!isMembers(value)) return at.invalid("expected an object")
  const { type } = value
  if (type == null) return at.invalid("is required", "type")
  if (typeof type !== "string") return at.invalid("expected a string", "type")
  if (type === "text") return void plain(value, at)
  if (!at.formats.has(type)) return at.unsupportedValue(`the model supports ${[...at.formats].join(", ")}`, "type")
  return type === "json_schema" ? withSchema(value, at) : plain(value, at)
}
