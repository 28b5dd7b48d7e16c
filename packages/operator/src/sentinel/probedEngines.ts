import { nameInEngine, type RevisionId, slotsOf } from "@seatrial/domain"
import type { EngineStarted, Run } from "@seatrial/store"
import type { ProbedEngine } from "@seatrial/trial"
import { isGood } from "../decide/fleet.ts"
import type { Gathered } from "../gather/gather.ts"
import { enginesOf } from "../observation/engines.ts"
import { isServed } from "../observation/isServed.ts"
import type { Observation } from "../observation/Observation.ts"

/** A start of an engine that gets probes. */
export interface ProbeTarget extends EngineStarted, Omit<ProbedEngine, "client"> {
  readonly pod: string
  readonly node: string | null
  readonly url: string
  readonly revisionId: RevisionId
  /** How many requests the engine computes at once; null if its settings do not say. */
  readonly slots: number | null
}

/** A pod of an engine. `target`: null if it gets no probes. */
export interface FollowedPod {
  readonly pod: string
  readonly uid: string | null
  readonly target: ProbeTarget | null
}

interface Pass {
  readonly run: Run
  readonly observation: Observation
  readonly gathered: Pick<Gathered, "node" | "otherNodes">
}

/** The engine gets probes if it serves and its trial has something to compare it with. */
const targetOf = (alone: Observation, node: string | null): ProbeTarget | null => {
  const { boot, engine, pod, podClass, run } = alone
  const { revision } = run
  // A run that serves with the engine of another one leaves the probes to that one.
  if (run.engineRun !== run.id || !isServed(alone) || boot === null || engine === null || podClass === null || revision === null) return null
  if (pod === null || pod.url === null || !isGood({ alone })) return null
  const { facts, id, settings } = revision
  return {
    podUid: pod.uid,
    restarts: pod.restarts,
    pod: pod.name,
    node,
    url: pod.url,
    revisionId: id,
    slots: slotsOf(settings),
    servedName: facts.adapter === undefined ? nameInEngine(engine.wire, run.model) : engine.wire.adapterModel,
    offers: engine.offers(settings, podClass.hostClass.simulated),
    metrics: engine.wire.trialMetrics,
    maxContext: settings.max_context
  }
}

/** The pods of all engines of the run, as its pass observed them. */
export const probedEngines = ({ gathered, observation }: Pass): ReadonlyArray<FollowedPod> =>
  enginesOf(observation).flatMap(({ alone, ordinal }) => {
    const { pod } = alone
    const node = ordinal === 0 ? gathered.node : gathered.otherNodes.get(ordinal)
    return pod === null ? [] : [{ pod: pod.name, uid: pod.uid, target: targetOf(alone, node?.metadata.name ?? null) }]
  })
