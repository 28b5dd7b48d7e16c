import { escapeUnsafe } from "./plainText.ts"

/** Micro-dollars as dollars, exactly: "1500000" is $1.50. */
export const dollars = (micros: string): string => {
  const sign = micros.startsWith("-") ? "-" : ""
  const padded = micros.slice(sign.length).padStart(7, "0")
  const fraction = padded.slice(-6).replace(/0+$/, "").padEnd(2, "0")
  return `${sign}$${padded.slice(0, -6)}.${fraction}`
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value)

const units = ["B", "KiB", "MiB", "GiB", "TiB"]

/** Bytes in the largest unit that gives a value of at least 1: 1610612736 is 1.50 GiB. */
export const size = (bytes: number): string => {
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${step === 0 ? bytes : (bytes / 1024 ** step).toFixed(2)} ${units[step]}`
}

const sizes = (value: unknown): unknown => {
  if (typeof value === "number") return size(value)
  return isRecord(value) ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, sizes(member)])) : value
}

const member = (name: string, value: unknown): readonly [name: string, value: unknown] => {
  if (/_micros(_|$)/.test(name) && typeof value === "string") return [name.replace("_micros", ""), dollars(value)]
  return /_bytes$/.test(name) ? [name.replace(/_bytes$/, ""), sizes(value)] : [name, readable(value)]
}

/** A value for people: money in dollars, bytes in larger units, and without the member `object`. */
export const readable = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(readable)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== "object")
      .map(([name, inner]) => member(name, inner))
  )
}

/** `readable` for a record. */
export const readableRecord = (record: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const display = readable(record)
  return isRecord(display) ? display : record
}

const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((text, index) => text.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd()
  )
}

const scalar = (value: unknown): string => {
  if (value === null || value === undefined) return "-"
  if (value === true) return "yes"
  return value === false ? "no" : escapeUnsafe(String(value))
}

/** A value on one line, for a cell of a table. */
export const cell = (value: unknown): string => {
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(cell).join(", ")
  if (isRecord(value)) {
    const members = Object.entries(value)
    return members.length === 0 ? "-" : members.map(([name, member]) => `${escapeUnsafe(name)}=${cell(member)}`).join(" ")
  }
  return scalar(value)
}

/** A value as lines, with nested parts aligned under their names. */
export const linesOf = (value: unknown): ReadonlyArray<string> => {
  if (Array.isArray(value)) {
    const records = value.filter(isRecord)
    if (value.length === 0 || records.length < value.length) return [cell(value)]
    const names = [...new Set(records.flatMap(Object.keys))]
    const rows = records.map((record) => names.map((name) => (name in record ? cell(record[name]) : "")))
    // Up to three columns need no header: a name, a verdict, a remark.
    return columns(names.length > 3 ? [names.map((name) => escapeUnsafe(name).toUpperCase()), ...rows] : rows)
  }
  if (typeof value === "string") return value.split("\n").map(escapeUnsafe)
  if (!isRecord(value)) return [scalar(value)]
  const entries = Object.entries(value).map(([name, member]) => [escapeUnsafe(name), member] as const)
  const width = Math.max(0, ...entries.map(([name]) => name.length))
  if (entries.length === 0) return ["-"]
  return entries.flatMap(([name, member]) => linesOf(member).map((line, index) => `${(index === 0 ? name : "").padEnd(width)}  ${line}`.trimEnd()))
}

/** Rows as aligned columns under the names of their members. */
export const tableOf = (rows: ReadonlyArray<Readonly<Record<string, unknown>>>): ReadonlyArray<string> => {
  const names = Object.keys(rows[0] ?? {})
  return columns([names.map((name) => escapeUnsafe(name).toUpperCase()), ...rows.map((row) => names.map((name) => cell(row[name])))])
}
