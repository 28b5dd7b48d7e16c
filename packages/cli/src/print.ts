import { Console, Effect } from "effect"
import { inColor } from "./color.ts"
import { guardOutput } from "./guardOutput.ts"
import { safeJson } from "./plainText.ts"
import { linesOf, readableRecord, tableOf } from "./readable.ts"

const print = (text: string) => Effect.andThen(Effect.sync(guardOutput), Console.log(text))

const printJson = (value: unknown) => print(safeJson(value))

/** JSON for programs, aligned columns for people. */
export const printRows = (json: boolean, rows: ReadonlyArray<Readonly<Record<string, unknown>>>) => {
  if (json) return printJson(rows)
  return print(rows.length === 0 ? "None." : inColor(tableOf(rows.map(readableRecord)), true).join("\n"))
}

/** JSON for programs, one member per line for people. */
export const printRecord = (json: boolean, record: Readonly<Record<string, unknown>>) =>
  json ? printJson(record) : print(inColor(linesOf(readableRecord(record)), false).join("\n"))
