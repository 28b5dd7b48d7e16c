const text = (value: string): string => {
  if (!value.isWellFormed()) throw new TypeError("A string with a lone surrogate has no canonical form")
  return JSON.stringify(value)
}

/**
 * Canonical JSON by RFC 8785 (JSON Canonicalization Scheme): no white space, members sorted by the UTF-16 code units of
 * their names, strings and numbers as ECMAScript serializes them. Throws a `TypeError` for values outside of I-JSON:
 * lone surrogates, non-finite numbers, and values that are not JSON.
 */
export const canonicalJson = (value: unknown): string => {
  if (value === null || typeof value === "boolean") return String(value)
  if (typeof value === "string") return text(value)
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical form`)
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${Array.from(value, canonicalJson).join(",")}]`
  if (typeof value !== "object") throw new TypeError(`A value of the type ${typeof value} is not JSON`)
  // Without a comparison function, `sort` orders by code units.
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${text(name)}:${canonicalJson(Reflect.get(value, name))}`).join(",")}}`
}
