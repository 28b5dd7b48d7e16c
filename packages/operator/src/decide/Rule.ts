import type { Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import type { Decision } from "./Decision.ts"

/** An observation with an engine's pod. */
export interface EngineObservation extends Observation {
  readonly pod: ObservedPod
}

export const hasPod = (observation: Observation): observation is EngineObservation => observation.pod !== null

/** One rule of an ordered list. Null if it does not apply. */
export type Rule<Subject extends Observation = EngineObservation> = (observation: Subject, now: number) => Decision | null

/** The decision of the first rule that applies; null if none does. */
export const firstOf = <Subject extends Observation>(rules: ReadonlyArray<Rule<Subject>>, observation: Subject, now: number): Decision | null => {
  for (const rule of rules) {
    const decision = rule(observation, now)
    if (decision !== null) return decision
  }
  return null
}
