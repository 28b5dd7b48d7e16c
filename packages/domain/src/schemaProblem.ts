import { SchemaIssue } from "effect"

/** The problem of an input: message, path, and whether it is an unknown field. */
export interface SchemaProblem {
  /** Path such as `messages[2].content`; null for the entire input. */
  readonly param: string | null
  readonly message: string
  readonly unexpected: boolean
}

const unexpected = "is not a known field"

/** The message for a value that is not a string. An environment variable that is not set has it too. */
export const notText = "must be a string"

const typeNames: Readonly<Record<string, string>> = {
  Objects: "must be an object",
  Arrays: "must be an array",
  String: notText,
  Number: "must be a number",
  Boolean: "must be true or false",
  // The schema of an empty input is a record of `Never`.
  Never: unexpected
}

/** Omits internal schema names, which mean nothing to a caller. */
const leafHook: SchemaIssue.LeafHook = (issue) => {
  if (issue._tag === "UnexpectedKey") return unexpected
  if (issue._tag === "MissingKey") return "is required"
  return (issue._tag === "InvalidType" ? typeNames[issue.ast._tag] : undefined) ?? SchemaIssue.defaultLeafHook(issue)
}

const format = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook })

/** What follows the name of a field: `Expected "a" | "b"` becomes `must be "a" or "b"`. */
const predicate = (text: string) =>
  text.startsWith("Expected ") ? `must be ${text.slice("Expected ".length).replaceAll(" | ", " or ")}` : text.charAt(0).toLowerCase() + text.slice(1)

const render = (path: ReadonlyArray<unknown>): string =>
  path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? String(part) : `.${String(part)}`)).join("")

/** The first problem of a failed decoding, in terms of the caller's input. */
export const schemaProblem = (issue: SchemaIssue.Issue): SchemaProblem => {
  const first = format(issue).issues[0]
  const path = (first?.path ?? []).map((part) => (typeof part === "object" ? part.key : part))
  const message = predicate(first?.message ?? "is not valid")
  return { param: path.length === 0 ? null : render(path), message, unexpected: message === unexpected }
}
