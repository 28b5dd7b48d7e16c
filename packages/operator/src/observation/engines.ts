import { enginePodName } from "../resources/objectNames.ts"
import type { Observation } from "./Observation.ts"
import type { ObservedEngine } from "./ObservedEngine.ts"
import type { Work } from "./work.ts"

/** The endpoints of the first engine: all that no other engine has. */
const ofFirst = ({ engines, run }: Observation) => {
  const otherPods = new Set(engines.map(({ ordinal }) => enginePodName(run.engineRun, ordinal)))
  return run.endpoints.filter(({ pod }) => !otherPods.has(pod))
}

/** The observation as if the first engine were the only one. */
export const firstEngine = (observation: Observation): Observation =>
  observation.engines.length === 0 ? observation : { ...observation, engines: [], run: { ...observation.run, endpoints: ofFirst(observation) } }

/** The observation as if that engine were the only one. Only its requests count. */
export const engineAlone = (observation: Observation, { ordinal, requests, ...engine }: ObservedEngine): Observation => {
  const { run } = observation
  const name = enginePodName(run.engineRun, ordinal)
  const inFlight = engine.pod?.ready === true ? (requests ?? 1) : 0
  return {
    ...observation,
    ...engine,
    engines: [],
    bootLog: null,
    blockedSince: null,
    run: { ...run, inFlight, endpoints: run.endpoints.filter(({ pod }) => pod === name) }
  }
}

/** The observation as if the engine with that ordinal were the only one. */
export const engineOf = (observation: Observation, ordinal: number): Observation => {
  const engine = observation.engines.find((each) => each.ordinal === ordinal)
  return engine === undefined ? firstEngine(observation) : engineAlone(observation, engine)
}

/** The ordinals of all engines, and for each the observation as if it were the only one. */
export const enginesOf = (observation: Observation): ReadonlyArray<{ readonly ordinal: number; readonly alone: Observation }> => [
  { ordinal: 0, alone: firstEngine(observation) },
  ...observation.engines.map((engine) => ({ ordinal: engine.ordinal, alone: engineAlone(observation, engine) }))
]

/** The background work that runs. */
export const runningWorks = ({ engines, work }: Observation): ReadonlyArray<Work> =>
  [{ ordinal: 0, work }, ...engines].flatMap(({ ordinal, work: { running } }) => (running === null ? [] : { kind: running, ordinal }))
