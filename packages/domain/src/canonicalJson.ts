/**
 * JSON without white space and with the members of each object in the order of their names' UTF-16 code units. Equal
 * values have equal texts. Members without a value (`undefined`) are left out.
 */
export const sortedJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  // Without a comparison function, `sort` orders by code units.
  const names = Object.keys(value).sort()
  const members = names.flatMap((name) => {
    const member: unknown = Reflect.get(value, name)
    return member === undefined ? [] : `${JSON.stringify(name)}:${sortedJson(member)}`
  })
  return `{${members.join(",")}}`
}

const checkText = (text: string): void => {
  if (!text.isWellFormed()) throw new TypeError("A string with a lone surrogate has no canonical form")
}

/** Throws a `TypeError` if a value is outside of I-JSON (RFC 7493). */
const checkIJson = (value: unknown): void => {
  if (value === null || typeof value === "boolean") return
  if (typeof value === "string") checkText(value)
  else if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical form`)
  } else if (typeof value !== "object") throw new TypeError(`A value of the type ${typeof value} is not JSON`)
  // Not `Object.entries`, which skips missing elements.
  else if (Array.isArray(value)) for (const element of value) checkIJson(element)
  else {
    for (const [name, member] of Object.entries(value)) {
      checkText(name)
      checkIJson(member)
    }
  }
}

/**
 * Canonical JSON by RFC 8785 (JSON Canonicalization Scheme): no white space, members sorted by the UTF-16 code units of
 * their names, strings and numbers as ECMAScript serializes them. Throws a `TypeError` for values outside of I-JSON:
 * lone surrogates, non-finite numbers, and values that are not JSON.
 */
export const canonicalJson = (value: unknown): string => {
  checkIJson(value)
  return sortedJson(value)
}
