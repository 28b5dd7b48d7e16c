import type { EarlierTrial } from "./SuiteSubject.ts"
import { suite } from "./suiteVersion.ts"

/** An earlier trial of the same commit, GPU type and settings, as recorded. */
export interface RecordedTrial extends Required<EarlierTrial> {
  readonly suite: string
  readonly suiteVersion: number
}

/**
 * The parts of an earlier trial that a later trial can be compared with. Another engine version hashes the weights
 * differently, but texts stay as likely except for rounding. Another suite version may have used other prompts, except
 * for texts that did not change.
 */
export const comparable = ({ fingerprints, likelihood, loadedChecksum, otherEngine, ...trial }: RecordedTrial): ReadonlyArray<EarlierTrial> => {
  if (trial.suite !== suite.name || trial.suiteVersion < suite.textsSince || trial.suiteVersion > suite.version) return []
  const isSame = trial.suiteVersion === suite.version && otherEngine === null
  return [{ otherEngine, loadedChecksum: isSame ? loadedChecksum : null, fingerprints: isSame ? fingerprints : [], likelihood }]
}
