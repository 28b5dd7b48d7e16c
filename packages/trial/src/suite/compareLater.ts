import type { CheckReport } from "@seatrial/domain"
import { Effect } from "effect"
import { referenceAgrees } from "./referenceAgrees.ts"
import { runSuite, type SuiteFindings } from "./runSuite.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"
import { summaryRow } from "./summaryRow.ts"

/** Whether the suite passed and did not compare the engine with a reference. */
export const lacksReference = ({ outcomes, passed }: CheckReport): boolean =>
  passed && outcomes.some(({ name, outcome }) => name === referenceAgrees.name && outcome === "not_applicable")

/**
 * The findings, with the comparison that they lack, by the seed of their report. If there is still no reference, the last
 * row says why.
 */
export const compareLater = Effect.fn("compareLater")(function* (subject: SuiteSubject, { report, seconds, ...findings }: SuiteFindings) {
  const later = yield* runSuite({ ...subject, seed: report.seed ?? subject.seed }, () => [referenceAgrees])
  const rows = [...report.checks, ...later.report.checks].filter(({ name }) => name !== "suite")
  const outcomes = report.outcomes.map((outcome) => later.report.outcomes.find(({ name }) => name === outcome.name) ?? outcome)
  const summary = summaryRow({ rows, outcomes, withdrawn: report.withdrawn ?? [] }, subject, seconds + later.seconds)
  const compared: SuiteFindings = {
    ...findings,
    report: { ...report, passed: later.report.passed, checks: [...rows, summary], outcomes },
    seconds: seconds + later.seconds
  }
  return compared
})
