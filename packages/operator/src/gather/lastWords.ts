import { FailureCode, type NamedFailure, RefusalCode } from "@seatrial/domain"
import { Option, Schema } from "effect"

/**
 * Failure codes that `seatrial fetch`, `seatrial copy-weights` and `seatrial merge-weights` may report in their last
 * line.
 */
const codes = FailureCode.pick([
  "weights_mismatch",
  "weights_store_full",
  "weights_missing",
  "download_failed",
  "hub_unavailable",
  "fidelity_failed",
  "fidelity_not_run",
  ...RefusalCode.literals
])
const decodeCode = Schema.decodeUnknownOption(codes)

const codeOf = (line: string): string => line.slice(0, Math.max(0, line.indexOf(": ")))

/**
 * The failure that a container reported as `<code>: <text>` at the end of its output. The command indents the line.
 * Lines of progress come through another pipe, so that some may follow it.
 */
export const lastWords = (message: string): NamedFailure | null => {
  const line = message
    .split("\n")
    .map((each) => each.trim())
    .findLast((each) => Option.isSome(decodeCode(codeOf(each))))
  const code = Option.getOrNull(decodeCode(codeOf(line ?? "")))
  if (line === undefined || code === null) return null
  return { code, text: line.slice(code.length + 2, code.length + 402).replace(/\p{Cc}/gu, " ") }
}
