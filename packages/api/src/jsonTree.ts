/** A JSON object with unknown members. */
export type Json = Readonly<Record<string, unknown>>

export const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** Maps the value of each member and keeps the names. */
export const mapMembers = (record: Json, change: (value: unknown, name: string) => unknown): Json =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]))
