import { Template } from "@huggingface/jinja"

/**
 * Maximum number of characters of a template that is parsed: several times the longest template in use, and at most
 * half a second of work.
 */
const longest = 64 * 1024

/**
 * A run of whitespace that no real template contains. The parser retries at each character, so that 64 KiB of
 * whitespace would take 15 seconds.
 */
const gap = /\s{257}/

/** The filters of Jinja and Transformers. Engines do not compile a template with any other filter. */
const filters = new Set(
  (
    "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format groupby indent int items join last length " +
    "list lower map max min pprint random reject rejectattr replace reverse round safe select selectattr slice sort string striptags sum title tojson trim " +
    "truncate unique upper urlencode urlize wordcount wordwrap xmlattr"
  ).split(" ")
)

/**
 * Errors that only an unterminated or wrongly terminated block causes. Other errors do not count, because this parser
 * supports less of the language than the engines' parser.
 */
const broken =
  /^(?:Unexpected end of input|Cannot read properties of undefined|Missing end of comment tag|Unknown statement type: (?:end(?:if|for|macro|set)|else|elif)$|Unexpected token: Close)/

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

/** The name of the filter that a node of a parsed template applies, or null. */
const filterOf = ({ filter, type }: Readonly<Record<string, unknown>>): string | null => {
  if ((type !== "FilterExpression" && type !== "FilterStatement") || !isRecord(filter)) return null
  const name = isRecord(filter.callee) ? filter.callee.value : filter.value
  return typeof name === "string" ? name : null
}

/** The first unknown filter in a parsed template, or null. */
const unknownFilter = (parsed: unknown): string | null => {
  const pending: Array<unknown> = [parsed]
  while (pending.length > 0) {
    const node = pending.pop()
    if (!isRecord(node)) continue
    const name = filterOf(node)
    if (name !== null && !filters.has(name)) return name
    for (const inner of Object.values(node)) pending.push(inner)
  }
  return null
}

/** A template that redefines `raise_exception`. */
const ownRaise = /\b(?:macro|set)\s+raise_exception\b/

/** Whether a part of a parsed template always raises an exception: at its top level or in every branch. */
const raises = (parts: unknown): boolean =>
  Array.isArray(parts) &&
  parts.some((node: unknown) => {
    if (!isRecord(node)) return false
    const { alternate, body, callee, filter, operand, type } = node
    if (type === "FilterExpression") return isRecord(filter) && raises([operand])
    if (type === "If") return raises(body) && raises(alternate)
    return type === "CallExpression" && isRecord(callee) && callee.type === "Identifier" && callee.value === "raise_exception"
  })

/** Whether this parser reads the template as the engine does, in bounded time. */
const isReadable = (template: string, own: boolean): boolean => template.length <= longest && !gap.test(template) && (own || !/\{%[-+]?\s*raw/.test(template))

/** The problem that an error of the parser reports; null if the error does not count. */
const parseProblem = (cause: unknown, own: boolean): string | null => {
  const message = cause instanceof Error ? cause.message : "it cannot be parsed"
  if (!own && !broken.test(message)) return null
  return message.startsWith("Cannot read") ? "it has a block without an end" : message.slice(0, 120).replace(/\.$/, "")
}

const findIssue = (template: string, own: boolean): string | null => {
  if (!isReadable(template, own)) return null
  try {
    const { parsed } = new Template(template)
    if (!ownRaise.test(template) && raises(parsed.body)) return "it raises an exception for every conversation"
    const filter = unknownFilter(parsed)
    return filter === null ? null : `it uses the filter ${filter.slice(0, 64)}, which Jinja does not have`
  } catch (cause) {
    return parseProblem(cause, own)
  }
}

let last: { readonly template: string; readonly own: boolean; readonly issue: string | null } = { template: "", own: true, issue: null }

/**
 * Why an engine cannot use a chat template, as the rest of a sentence; null if it can or if that is unknown. `own`:
 * whether the engine uses the same parser as this check, so that every error counts.
 */
export const templateIssue = (template: string, own: boolean): string | null => {
  // Several host classes are checked in a row with the same template.
  if (last.template !== template || last.own !== own) last = { template, own, issue: findIssue(template, own) }
  return last.issue
}
