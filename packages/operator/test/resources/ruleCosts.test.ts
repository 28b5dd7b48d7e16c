import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { parse } from "yaml"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value)

/** The paths of lists that a CEL rule reads although their strings or their number of items have no maximum. */
const unboundedLists = (schema: unknown, path: string): ReadonlyArray<string> => {
  if (Array.isArray(schema)) return schema.flatMap((part, index) => unboundedLists(part, `${path}[${index}]`))
  if (!isRecord(schema)) return []
  const isBounded = (items: unknown) => isRecord(items) && (items.type !== "string" || items.maxLength !== undefined || items.enum !== undefined)
  const own = schema.type === "array" && "x-kubernetes-validations" in schema && !(schema.maxItems !== undefined && isBounded(schema.items)) ? [path] : []
  return [...own, ...Object.entries(schema).flatMap(([name, child]) => unboundedLists(child, `${path}.${name}`))]
}

it.each(["modeldeployments", "hostclasses"])(
  "the definition of %s bounds each list with a rule: an API server refuses a rule whose estimated cost has no bound",
  (name) => {
    const definition: unknown = parse(readFileSync(new URL(`../../../../k8s/crds/${name}.yaml`, import.meta.url), "utf8"))
    assert.deepStrictEqual(unboundedLists(definition, name), [])
  }
)
