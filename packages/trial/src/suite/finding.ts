import { type CheckOutcome, isFailedCheck } from "@seatrial/domain"
import { Data } from "effect"
import type { Unexpected } from "../engineAnswers.ts"
import { isBroken, type TrialCheck } from "./Check.ts"

/** How a check ended, as data. `measured`: the numbers and codes of the check itself, never generated text. */
export type Finding = Data.TaggedEnum<{
  Passed: { readonly measured: string; readonly attempts: 1 | 2 }
  Failed: { readonly failure: Unexpected }
  /** It failed, then passed, although nothing that it depends on changed. */
  Flaky: { readonly failure: Unexpected }
  /** `isComputing`: whether tokens still came, or token counters moved. */
  TimedOut: { readonly seconds: number; readonly isComputing: boolean }
  /** The engine accepts connections, but sent no token and moved no counter. */
  Hung: { readonly seconds: number }
}>
export const Finding = Data.taggedEnum<Finding>()

/** How a check ended, without its name and class. */
export type Outcome = Omit<CheckOutcome, "name" | "class">

/** The only place that renders a finding as text. */
const detailOf = Finding.$match({
  Passed: ({ attempts, measured }) => (attempts === 1 ? measured : `${measured}; on the second attempt`),
  Failed: ({ failure }) => failure.detail,
  Flaky: ({ failure }) => (isBroken(failure) ? `engine error, then passed (${failure.detail})` : `failed, then passed (${failure.detail})`),
  TimedOut: ({ isComputing, seconds }) => `not done within ${seconds} s, ${isComputing ? "while the engine computed" : "and no token came"}`,
  Hung: ({ seconds }) => `no answer and no token within ${seconds} s`
})

const evidenceOf = ({ cause, code }: Unexpected): Pick<Outcome, "cause" | "code"> => ({
  ...(code === undefined ? {} : { code }),
  ...(cause === undefined ? {} : { cause })
})

const outcomeData = (finding: Finding, { clockBound }: Pick<TrialCheck, "clockBound">): Outcome => {
  switch (finding._tag) {
    case "Passed":
      return { outcome: "passed" }
    case "Failed": {
      const evidence = evidenceOf(finding.failure)
      if (isBroken(finding.failure)) return { outcome: "engine_error", isReproduced: true, ...evidence }
      return { outcome: "failed", ...evidence, ...(clockBound === true ? { isClockBound: true } : {}) }
    }
    case "Flaky":
      // An HTTP 5xx says nothing about the answers. Text of another request in an answer is a leak even if it happens
      // once.
      if (isBroken(finding.failure)) return { outcome: "engine_error", isReproduced: false }
      return { outcome: "flaky", code: finding.failure.code === "cross_request_leak" ? finding.failure.code : "nondeterministic_output" }
    case "TimedOut":
      return { outcome: "timeout", isComputing: finding.isComputing }
    case "Hung":
      return { outcome: "hung", code: "engine_hung" }
  }
}

export const maxDetailLength = 240

/** The text of a row, as deployments and receipts show it. */
export const rowDetail = (detail: string): string => detail.slice(0, maxDetailLength)

/** The finding as stored, and as text. */
export const outcomeOf = (finding: Finding, check: Pick<TrialCheck, "clockBound">): { readonly outcome: Outcome; readonly detail: string } => {
  const detail = detailOf(finding)
  const outcome = outcomeData(finding, check)
  return { outcome: isFailedCheck(outcome) ? { ...outcome, detail: rowDetail(detail) } : outcome, detail }
}
