import type { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import type { SuiteFindings } from "@seatrial/trial"
import { type ObservedPod, whichStart } from "../observation/ObservedPod.ts"

/** The findings of checks whose engine is still to be compared with a reference. */
export interface HeldReport {
  /** The start of the engine that was checked. */
  readonly with: string
  /** When the checks were done, Unix milliseconds. */
  readonly since: number
  readonly findings: SuiteFindings
}

/** By run. Kept only in memory: after a restart of the operator the checks run again. */
export type HeldReports = Map<DeploymentId, HeldReport>

/** When the checks of the run's engine were done; null if no report is held. Forgets a report of an earlier start. */
export const observeHeld = (held: HeldReports, { id, phase, revision }: Run, pod: ObservedPod | null, now: number): number | null => {
  const report = held.get(id)
  if (report === undefined) return null
  if (phase === "checking" && revision?.checks === null && pod !== null && whichStart(pod) === report.with) return Math.min(report.since, now)
  held.delete(id)
  return null
}
