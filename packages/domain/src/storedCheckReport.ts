import { Schema, SchemaTransformation } from "effect"
import { type Check, CheckOutcome, CheckReport, isFailedCheck } from "./trial.ts"

/** A report as stored before `format`. Up to suite version 10 it has no outcomes. */
const FirstFormat = Schema.Struct({
  ...CheckReport.fields,
  format: Schema.optionalKey(Schema.Never),
  outcomes: Schema.optionalKey(Schema.Array(CheckOutcome)),
  loaded_checksum: Schema.optionalKey(Schema.Never)
})

/** In the first format the checksum of the loaded tensors was a part of the row's text. This pattern matches stored rows only and must never change. */
const firstChecksum = /checksum ([0-9a-f]{16})/

/** The row's text without the code in front of it, which the first format stored in the text. */
const detailOf = ({ detail = "" }: Check, code: string | undefined): string =>
  code !== undefined && detail.startsWith(`${code}: `) ? detail.slice(code.length + 2) : detail

const outcomeOf = (row: Check, withdrawn: ReadonlyArray<string>): CheckOutcome => ({
  name: row.name,
  class: withdrawn.includes(row.name) ? "capability" : "required",
  outcome: row.passed ? "passed" : "failed"
})

const upgraded = ({ checks, format: _, loaded_checksum: __, outcomes, ...report }: typeof FirstFormat.Type): CheckReport => {
  const rows = new Map(checks.map((row) => [row.name, row]))
  const known = outcomes ?? checks.map((row) => outcomeOf(row, report.withdrawn ?? []))
  const loaded = rows.get("loaded_tensors")
  const checksum = loaded?.passed === true ? firstChecksum.exec(loaded.detail ?? "")?.[1] : undefined
  return {
    ...report,
    format: 2,
    checks,
    outcomes: known.map((outcome) => {
      const row = rows.get(outcome.name)
      return row?.detail === undefined || !isFailedCheck(outcome) ? outcome : { ...outcome, detail: detailOf(row, outcome.code) }
    }),
    ...(checksum === undefined ? {} : { loaded_checksum: checksum })
  }
}

/** A report as the database holds it, in any format. Decoding returns the current format. */
export const StoredCheckReport = Schema.Union([
  CheckReport,
  FirstFormat.pipe(
    Schema.decodeTo(
      Schema.toType(CheckReport),
      SchemaTransformation.transform({
        decode: upgraded,
        encode: ({ format: _, loaded_checksum: __, ...report }): typeof FirstFormat.Type => report
      })
    )
  )
])
