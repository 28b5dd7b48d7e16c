import { phaseTraits } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect } from "effect"
import { bootRestarts } from "../limits.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { engineContainer } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { lastExit, mainContainer } from "./podStatus.ts"

/** Lines of an engine's log that explain a failed start. */
const bootLines = 200

/** The end of the log of a running download or copy; empty if the node does not return it at once. */
export const readProgressLog = Effect.fnUntraced(function* (pod: string, namespace: string, container: string) {
  const kube = yield* KubeClient
  return yield* kube.podLog(pod, namespace, { container, tailLines: 5 }).pipe(
    Effect.timeout("2 seconds"),
    Effect.catch(() => Effect.succeed(""))
  )
})

/** The end of an engine's log; null unless its start failed. */
export const readBootLog = Effect.fnUntraced(function* (run: Run, pod: ObservedPod | null, watched: WatchedPod | undefined, namespace: string) {
  const isFailedStart = phaseTraits[run.phase].engineRuns && pod !== null && !pod.ready && pod.restarts >= bootRestarts
  if (!isFailedStart) return null
  const kube = yield* KubeClient
  const log = yield* Effect.catch(kube.podLog(pod.name, namespace, { container: engineContainer, tailLines: bootLines }), () => Effect.succeed(""))
  // If the container runs again, the log already belongs to its new start.
  const lastOutput = watched === undefined ? "" : (lastExit(mainContainer(watched))?.message ?? "")
  return `${lastOutput}\n${log}`
})
