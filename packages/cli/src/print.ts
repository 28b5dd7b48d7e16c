import { Console } from "effect"

/** JSON for programs, aligned columns for people. */
export const printRows = (json: boolean, rows: ReadonlyArray<Readonly<Record<string, unknown>>>) => {
  if (json) return Console.log(JSON.stringify(rows, null, 2))
  const first = rows[0]
  if (first === undefined) return Console.log("None.")
  const columns = Object.keys(first)
  const cell = (value: unknown) => (value === null || value === undefined ? "-" : Array.isArray(value) ? value.join(",") : String(value))
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => cell(row[column]).length)))
  const line = (cells: ReadonlyArray<string>) =>
    cells
      .map((text, index) => text.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd()
  return Console.log([line(columns.map((column) => column.toUpperCase())), ...rows.map((row) => line(columns.map((column) => cell(row[column]))))].join("\n"))
}

export const printRecord = (json: boolean, record: Readonly<Record<string, unknown>>) => {
  if (json) return Console.log(JSON.stringify(record, null, 2))
  const width = Math.max(...Object.keys(record).map((name) => name.length))
  const text = (value: unknown) => (value === null ? "-" : typeof value === "object" ? JSON.stringify(value) : String(value))
  return Console.log(
    Object.entries(record)
      .map(([name, value]) => `${name.padEnd(width)}  ${text(value)}`)
      .join("\n")
  )
}
