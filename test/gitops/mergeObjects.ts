const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value)

/** Two objects as one, as Helm merges values: the second one's fields win. */
export const mergeObjects = (first: object, second: object): Record<string, unknown> => {
  const merged: Record<string, unknown> = { ...first }
  for (const [name, value] of Object.entries(second)) {
    const before = merged[name]
    merged[name] = isObject(before) && isObject(value) ? mergeObjects(before, value) : value
  }
  return merged
}
