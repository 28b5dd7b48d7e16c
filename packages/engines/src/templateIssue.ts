import { Template } from "@huggingface/jinja"

/** Characters of the longest template that is looked at: several times the longest of today, and half a second's work for the worst of them. */
const longest = 64 * 1024

/** Spaces or ends of lines in a row that no template has: the parser here tries each of them as the first, so 64 KiB of them would take it a quarter of a minute. */
const gap = /\s{257}/

/** Jinja's own filters, and what Transformers adds: engines compile no template with another one. */
const filters = new Set(
  (
    "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format groupby indent int items join last length " +
    "list lower map max min pprint random reject rejectattr replace reverse round safe select selectattr slice sort string striptags sum title tojson trim " +
    "truncate unique upper urlencode urlize wordcount wordwrap xmlattr"
  ).split(" ")
)

/** What only a template without an end, or with the wrong one, gives: the parser here knows less of the language than the engines' own does. */
const broken =
  /^(?:Unexpected end of input|Cannot read properties of undefined|Missing end of comment tag|Unknown statement type: (?:end(?:if|for|macro|set)|else|elif)$|Unexpected token: Close)/

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

/** The first filter in a parsed template that Jinja has not. */
const unknownFilter = (parsed: unknown): string | null => {
  const pending: Array<unknown> = [parsed]
  while (pending.length > 0) {
    const node = pending.pop()
    if (!isRecord(node)) continue
    const { filter, type } = node
    if ((type === "FilterExpression" || type === "FilterStatement") && isRecord(filter)) {
      const name = isRecord(filter.callee) ? filter.callee.value : filter.value
      if (typeof name === "string" && !filters.has(name)) return name
    }
    for (const inner of Object.values(node)) pending.push(inner)
  }
  return null
}

/** A template that makes something of its own of the function that raises. */
const ownRaise = /\b(?:macro|set)\s+raise_exception\b/

/** Whether a part of a parsed template raises an exception whatever it is given: at its own level, or in every branch. */
const raises = (parts: unknown): boolean =>
  Array.isArray(parts) &&
  parts.some((node: unknown) => {
    if (!isRecord(node)) return false
    const { alternate, body, callee, filter, operand, type } = node
    if (type === "FilterExpression") return isRecord(filter) && raises([operand])
    if (type === "If") return raises(body) && raises(alternate)
    return type === "CallExpression" && isRecord(callee) && callee.type === "Identifier" && callee.value === "raise_exception"
  })

const look = (template: string, own: boolean): string | null => {
  if (template.length > longest || gap.test(template) || (!own && /\{%[-+]?\s*raw/.test(template))) return null
  try {
    const { parsed } = new Template(template)
    if (!ownRaise.test(template) && raises(parsed.body)) return "it raises an exception for every conversation"
    const filter = unknownFilter(parsed)
    return filter === null ? null : `it uses the filter ${filter.slice(0, 64)}, which Jinja does not have`
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : "it cannot be parsed"
    if (!own && !broken.test(message)) return null
    return message.startsWith("Cannot read") ? "a block in it has no end" : message.slice(0, 120).replace(/\.$/, "")
  }
}

let last: { readonly template: string; readonly own: boolean; readonly issue: string | null } = { template: "", own: true, issue: null }

/**
 * Why an engine could not use a chat template, as the rest of a sentence; null where it could, or where that is not known. `own`: the engine reads it by the parser that
 * is used here, so that all that this one refuses is refused.
 */
export const templateIssue = (template: string, own: boolean): string | null => {
  // A model is tried on one host class after the other, and its template is the same for all.
  if (last.template !== template || last.own !== own) last = { template, own, issue: look(template, own) }
  return last.issue
}
