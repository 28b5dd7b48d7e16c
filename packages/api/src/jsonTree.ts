/** A JSON object whose members are not known yet. */
export type Json = Readonly<Record<string, unknown>>

export const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** The same members, each with another value. */
export const mapMembers = (record: Json, change: (value: unknown, name: string) => unknown): Json =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]))
