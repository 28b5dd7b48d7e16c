import type { Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { by, type Decision, type NamedDecision } from "./Decision.ts"

/** An observation with an engine's pod. */
export interface EngineObservation extends Observation {
  readonly pod: ObservedPod
}

export const hasPod = (observation: Observation): observation is EngineObservation => observation.pod !== null

/** One rule of an ordered list. Null if it does not apply. */
export type Rule<Subject extends Observation = EngineObservation> = (observation: Subject, now: number) => Decision | null

/**
 * The decision of the first rule that applies, with its name; null if none does. The rules are in the order of their
 * precedence.
 */
export const firstOf = <Subject extends Observation>(
  rules: Readonly<Record<string, Rule<Subject>>>,
  observation: Subject,
  now: number
): NamedDecision | null => {
  for (const [name, rule] of Object.entries(rules)) {
    const decision = rule(observation, now)
    if (decision !== null) return by(name, decision)
  }
  return null
}
