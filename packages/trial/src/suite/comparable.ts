import type { EarlierTrial } from "./SuiteSubject.ts"
import { suite } from "./suiteVersion.ts"

/** An earlier trial of the same commit, card and settings as it was recorded. */
export interface RecordedTrial extends Required<EarlierTrial> {
  readonly suite: string
  readonly suiteVersion: number
}

/** Rows whose details hold what only the same version of an engine finds again: hashes of what it has made of the weights. */
const ofOneEngine = new Set(["loaded_tensors"])

/**
 * What of an earlier trial this one can be held to. Hashes of another version of the engine differ, while texts are as likely but for rounding. Another version of the
 * suite may have asked anything else, but for texts that were the same.
 */
export const comparable = ({ checks, fingerprints, likelihood, otherEngine, ...trial }: RecordedTrial): ReadonlyArray<EarlierTrial> => {
  if (trial.suite !== suite.name || trial.suiteVersion < suite.textsSince || trial.suiteVersion > suite.version) return []
  if (trial.suiteVersion !== suite.version) return [{ otherEngine, checks: [], fingerprints: [], likelihood }]
  return otherEngine === null
    ? [{ otherEngine, checks, fingerprints, likelihood }]
    : [{ otherEngine, checks: checks.filter(({ name }) => !ofOneEngine.has(name)), fingerprints: [], likelihood }]
}
