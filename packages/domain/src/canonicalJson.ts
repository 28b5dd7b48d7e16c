const text = (value: string): string => {
  if (!value.isWellFormed()) throw new TypeError("A string with a lone surrogate has no canonical form")
  return JSON.stringify(value)
}

/**
 * The one spelling of a JSON value by RFC 8785 (JSON Canonicalization Scheme): no white space, members in the order of their names' UTF-16 code units, strings and
 * numbers as ECMAScript writes them, which is what that scheme took over. Throws a `TypeError` for what I-JSON cannot hold: lone surrogates, numbers without end,
 * and anything that is no JSON.
 */
export const canonicalJson = (value: unknown): string => {
  if (value === null || typeof value === "boolean") return String(value)
  if (typeof value === "string") return text(value)
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical form`)
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${Array.from(value, canonicalJson).join(",")}]`
  if (typeof value !== "object") throw new TypeError(`A value of the type ${typeof value} is no JSON`)
  // Without a comparison, `sort` orders by code units.
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${text(name)}:${canonicalJson(Reflect.get(value, name))}`).join(",")}}`
}
