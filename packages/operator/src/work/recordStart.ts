import type { EngineStart } from "@seatrial/domain"
import { timeOfHit } from "@seatrial/engines"
import { KubeClient } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { firstToken } from "@seatrial/trial"
import { Effect } from "effect"
import { initContainer, mainContainer, millisOf } from "../gather/podStatus.ts"
import { copyContainer, engineContainer } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { type EngineUnderTrial, subjectOf } from "./EngineUnderTrial.ts"
import { persist } from "./persist.ts"

/** The longest time for an image or weights that are already on the node, seconds. */
const cachedMaxSeconds = 5

const between = (from: number | null, to: number | null): number | null => (from === null || to === null ? null : Math.max(0, to - from) / 1_000)

/** When the last init container ended, Unix milliseconds; null if none did. A sidecar among them never ends. */
const preparedAt = (pod: WatchedPod): number | null => {
  const ends = (pod.status?.initContainerStatuses ?? []).flatMap(({ state }) => millisOf(state?.terminated?.finishedAt) ?? [])
  return ends.length === 0 ? null : Math.max(...ends)
}

/** The durations of the parts of a pod's start, from its status and its log. `first`: seconds to the first token. */
export const startOf = (pod: WatchedPod, loadedAt: number | null, first: number | null): EngineStart => {
  const copied = initContainer(pod, copyContainer)?.state?.terminated
  const container = mainContainer(pod)
  const condition = (name: string) => millisOf(pod.status?.conditions?.find(({ status, type }) => type === name && status === "True")?.lastTransitionTime)
  const beganAt = millisOf(container?.state?.running?.startedAt)
  const image_pull = between(preparedAt(pod) ?? condition("PodScheduled"), beganAt)
  const weights_to_node = between(millisOf(copied?.startedAt), millisOf(copied?.finishedAt))
  const parts = {
    image_pull,
    weights_to_node,
    process_to_loaded: between(beganAt, loadedAt),
    loaded_to_ready: between(loadedAt, condition("Ready")),
    first_token: first
  }
  return { podUid: pod.metadata.uid ?? "", kind: (image_pull ?? 0) <= cachedMaxSeconds && (weights_to_node ?? 0) <= cachedMaxSeconds ? "warm" : "cold", parts }
}

/**
 * Sends the first request to the engine and records how long its start took. Unknown parts are omitted: this never
 * fails a run.
 */
export const recordStart = Effect.fn("recordStart")(function* (trial: EngineUnderTrial) {
  const runs = yield* Runs
  const kube = yield* KubeClient
  const { engine, enginePod, namespace, pod, run } = trial
  // A restarted engine is neither cold nor warm.
  if (enginePod === undefined || (mainContainer(enginePod)?.restartCount ?? 0) > 0) return
  const first = yield* firstToken(yield* subjectOf(trial, "60 seconds"))
  const log = yield* Effect.catch(kube.podLog(pod.name, namespace, { container: engineContainer, timestamps: true }), () => Effect.succeed(""))
  yield* persist(runs.recordStart(run.id, run.orgId, startOf(enginePod, timeOfHit(log, engine.weightsLoaded), first)))
})
