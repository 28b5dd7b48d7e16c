import { Schema, SchemaTransformation } from "effect"
import { type Check, CheckOutcome, CheckReport, isFailedCheck } from "./trial.ts"

/** A report as stored before `format`. Up to suite version 10 it has no outcomes. */
const FirstFormat = Schema.Struct({
  ...CheckReport.fields,
  format: Schema.optionalKey(Schema.Never),
  outcomes: Schema.optionalKey(Schema.Array(CheckOutcome)),
  loaded_checksum: Schema.optionalKey(Schema.Never)
})

/**
 * In the first format the checksum of the loaded tensors was a part of the row's text. This pattern matches stored rows
 * only and must never change.
 */
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

/** An outcome as another version of the program may have stored it, with values that this version does not know. */
const ForeignOutcome = Schema.Struct({
  ...CheckOutcome.fields,
  class: Schema.String,
  outcome: Schema.String,
  code: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.String)
})
const ForeignReport = Schema.Struct({ ...CheckReport.fields, outcomes: Schema.Array(ForeignOutcome) })

const isClass = Schema.is(CheckOutcome.fields.class)
const isOutcome = Schema.is(CheckOutcome.fields.outcome)
const isCode = Schema.is(CheckOutcome.fields.code.schema)
const isCause = Schema.is(CheckOutcome.fields.cause.schema)

/**
 * Replaces unknown values. The version that stored the report has decided whether it passed, so an unknown outcome
 * never fails a report that passed. An unknown code or cause only loses its advice; `detail` says what happened.
 */
const knownOutcome = (passed: boolean, { cause, class: kind, code, outcome, ...rest }: typeof ForeignOutcome.Type): CheckOutcome => ({
  ...rest,
  class: isClass(kind) ? kind : "required",
  outcome: isOutcome(outcome) ? outcome : passed ? "not_applicable" : "failed",
  ...(isCode(code) ? { code } : {}),
  ...(isCause(cause) ? { cause } : {})
})

/**
 * A report as the database holds it, in any format and with values of any version. Decoding returns the current format.
 * A release that changes `format` is preceded by one that reads it.
 */
export const StoredCheckReport = Schema.Union([
  CheckReport,
  ForeignReport.pipe(
    Schema.decodeTo(
      Schema.toType(CheckReport),
      SchemaTransformation.transform({
        decode: ({ outcomes, ...report }): CheckReport => ({ ...report, outcomes: outcomes.map((each) => knownOutcome(report.passed, each)) }),
        encode: (report): typeof ForeignReport.Type => report
      })
    )
  ),
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
