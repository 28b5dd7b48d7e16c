import { KubeClient } from "@seatrial/kube"
import { Effect } from "effect"
import type { Gathered } from "../gather/gather.ts"
import { mainContainer, mainContainerName } from "../gather/podStatus.ts"
import type { WatchedPod } from "../resources/watched.ts"

const lines = 60
/** Characters to keep from each end of a log. */
const length = 8_000

/** Removes hub tokens and API keys. Neither a download nor an engine logs them; this guards against their libraries. */
const withoutSecrets = (text: string) => text.replace(/\b(hf_|seatrial_)[A-Za-z0-9]{8,}/g, "$1…").replace(/(bearer\s+)\S+/gi, "$1…")

/** Why the container does not run, if the node reports it. */
const nodeMessage = (pod: WatchedPod): string => {
  const container = mainContainer(pod)
  const { reason = "", message = "" } = container?.state?.waiting ?? container?.state?.terminated ?? container?.lastState?.terminated ?? pod.status ?? {}
  return [reason, message].filter((part) => part !== "").join(": ")
}

/** The termination message of the container that ended last. */
const terminationMessage = (pod: WatchedPod): string => {
  const container = mainContainer(pod)
  return (container?.lastState?.terminated ?? container?.state?.terminated)?.message ?? ""
}

/**
 * Copies the end of the containers' logs of a failed run into the operator's log, before the pods and their logs are
 * deleted. Never fails, and its time is bounded.
 */
export const keepLog = Effect.fnUntraced(function* ({ pods, run }: Pick<Gathered, "pods" | "run">, code: string, namespace: string) {
  const kube = yield* KubeClient
  for (const pod of pods) {
    const { name } = pod.metadata
    const read = (previous: boolean) =>
      kube.podLog(name, namespace, { container: mainContainerName(pod), tailLines: lines, ...(previous ? { previous } : {}) }).pipe(
        Effect.timeout("5 seconds"),
        Effect.catch(() => Effect.succeed(""))
      )
    // A restarted container may have no output yet. The cause is in the previous container's log or termination
    // message.
    const restarted = (mainContainer(pod)?.restartCount ?? 0) > 0
    const before = restarted ? (yield* read(true)) || terminationMessage(pod) : ""
    const log = yield* read(false)
    const parts = [before.slice(-length), nodeMessage(pod), log.slice(-length)]
    const text = withoutSecrets(parts.filter((part) => part.trim() !== "").join("\n"))
    if (text === "") continue
    yield* Effect.logWarning(`${run.id} fails with ${code}; the last output of ${name}:\n${text}`)
  }
})
