import type { Observation } from "../observation/Observation.ts"
import { Action, type Decision } from "./Decision.ts"

/** Takes the engine out of traffic. */
export const withdraw = ({ run }: Observation): ReadonlyArray<Action> => (run.endpoints.length === 0 ? [] : [Action.Publish({ endpoints: [] })])

/** The decision, after the engine was taken out of traffic. */
export const withdrawn = (observation: Observation, decision: Decision): Decision => ({
  ...decision,
  actions: [...withdraw(observation), ...decision.actions]
})
