import { Action } from "./Decision.ts"
import { countedFrom, type Observation } from "./Observation.ts"

/**
 * When an engine that serves is given up, Unix milliseconds: it runs, and has not been ready for as long as its host class lets one start. Nobody else ends an engine that
 * hangs with its port open. Null where that is no question: it is ready, is told of otherwise (its node, its image), or could not be started again.
 */
export const hungAt = (seen: Observation): number | null => {
  const { pod, podClass } = seen
  if (pod === null || podClass === null || pod.deleting || pod.ready || !pod.started) return null
  if (pod.lost !== null || pod.nodeDownSince !== null || pod.blocked !== null) return null
  return countedFrom(seen, pod.createdAt, pod.startedAt, pod.readyChangedAt) + podClass.bootDeadlineSeconds * 1_000
}

/** Says that the engine is given up, and takes its pod. */
export const replaceHung = ({ pod, podClass }: Observation): { readonly message: string; readonly actions: ReadonlyArray<Action> } => {
  const message = `The engine was not ready for ${podClass?.bootDeadlineSeconds} seconds, though its container runs. It is replaced.`
  return {
    message,
    actions: pod === null ? [] : [Action.Tell({ reason: "EngineReplaced", about: pod.uid, message }), Action.RemovePod({ uid: pod.uid, force: false })]
  }
}
