import { Console } from "effect"
import { safeJson } from "./plainText.ts"
import { linesOf, tableOf } from "./readable.ts"

const printJson = (value: unknown) => Console.log(safeJson(value))

/** JSON for programs, aligned columns for people. */
export const printRows = (json: boolean, rows: ReadonlyArray<Readonly<Record<string, unknown>>>) => {
  if (json) return printJson(rows)
  return Console.log(rows.length === 0 ? "None." : tableOf(rows).join("\n"))
}

/** JSON for programs, one member a line for people. */
export const printRecord = (json: boolean, record: Readonly<Record<string, unknown>>) => (json ? printJson(record) : Console.log(linesOf(record).join("\n")))
