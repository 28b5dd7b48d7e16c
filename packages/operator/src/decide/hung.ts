import { countedFrom, type Observation } from "../observation/Observation.ts"
import { Action } from "./Decision.ts"

/**
 * When the operator replaces a serving engine, Unix milliseconds. The engine runs but has not been ready for as long as
 * its host class allows for a start. Nothing else ends an engine that hangs with an open port. Null if the engine is
 * ready, could not be restarted, or its state has another cause (its node, its image).
 */
export const hungAt = (observation: Observation): number | null => {
  const { pod, podClass } = observation
  if (pod === null || podClass === null || pod.deleting || pod.ready || !pod.started) return null
  if (pod.lost !== null || pod.nodeDownSince !== null || pod.blocked !== null) return null
  return countedFrom(observation, pod.createdAt, pod.startedAt, pod.readyChangedAt) + podClass.bootDeadlineSeconds * 1_000
}

/** Logs that the engine hangs, and deletes its pod. */
export const replaceHung = ({ pod, podClass }: Observation): { readonly message: string; readonly actions: ReadonlyArray<Action> } => {
  const time = `${podClass?.bootDeadlineSeconds} seconds`
  const sidecar = pod?.unreadySidecar ?? null
  const message =
    sidecar === null
      ? `The engine was not ready for ${time}, although its container runs. The engine is replaced.`
      : `The engine is ready, but the container ${sidecar}, which the cluster added to its pod, was not ready for ${time}. The pod is replaced.`
  return {
    message,
    actions: pod === null ? [] : [Action.RecordEvent({ reason: "EngineReplaced", about: pod.uid, message }), Action.RemovePod({ uid: pod.uid, force: false })]
  }
}
