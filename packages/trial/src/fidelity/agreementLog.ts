import { Option, Schema } from "effect"
import type { MergedAgreement } from "./rules.ts"

/**
 * The line of JSON that `seatrial merge-weights` prints for programs, and that the operator reads from the container's
 * log.
 */
const AgreementLine = Schema.fromJsonString(
  Schema.Struct({
    merged_weights: Schema.Struct({ version: Schema.Literal(1), within_ulp_min: Schema.Finite, others_equal: Schema.Boolean })
  })
)
const decodeLine = Schema.decodeUnknownOption(AgreementLine)

/**
 * The output of `seatrial merge-weights`: a line for people, then a line of JSON. The percentage is rounded down, so
 * that it never overstates the agreement.
 */
export const renderAgreement = ({ othersEqual, withinUlpMin }: MergedAgreement): string => {
  const percent = (Math.floor(withinUlpMin * 1e5) / 1e3).toFixed(3)
  const line = JSON.stringify({ merged_weights: { version: 1, within_ulp_min: withinUlpMin, others_equal: othersEqual } })
  return `${percent}% within one unit in the last place, all other tensors ${othersEqual ? "equal" : "DIFFERENT"}\n${line}`
}

/** Reads the agreement from a log; null if the log has none. */
export const readAgreement = (log: string): MergedAgreement | null => {
  const lines = log.split("\n").flatMap((line) => Option.toArray(decodeLine(line)))
  const agreement = lines.at(-1)?.merged_weights
  return agreement === undefined ? null : { withinUlpMin: agreement.within_ulp_min, othersEqual: agreement.others_equal }
}
