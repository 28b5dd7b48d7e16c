import { SchemaIssue } from "effect"

/** The problem of an input: message, path, and whether it is an unknown member. */
export interface SchemaProblem {
  /** Path such as `messages[2].content`; null for the entire input. */
  readonly param: string | null
  readonly message: string
  readonly unexpected: boolean
}

const unexpected = "is not a known member"

/** Omits internal schema names, which mean nothing to a caller. */
const leafHook: SchemaIssue.LeafHook = (issue) => {
  if (issue._tag === "UnexpectedKey") return unexpected
  if (issue._tag === "MissingKey") return "is required"
  if (issue._tag === "InvalidType" && issue.ast._tag === "Objects") return "expected an object"
  if (issue._tag === "InvalidType" && issue.ast._tag === "Arrays") return "expected an array"
  return SchemaIssue.defaultLeafHook(issue)
}

const format = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook })

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

const render = (path: ReadonlyArray<unknown>): string =>
  path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? String(part) : `.${String(part)}`)).join("")

/** The first problem of a failed decoding, in terms of the caller's input. */
export const schemaProblem = (issue: SchemaIssue.Issue): SchemaProblem => {
  const first = format(issue).issues[0]
  const path = (first?.path ?? []).map((part) => (typeof part === "object" ? part.key : part))
  const message = lowerFirst(first?.message ?? "is not valid")
  return { param: path.length === 0 ? null : render(path), message, unexpected: message === unexpected }
}
