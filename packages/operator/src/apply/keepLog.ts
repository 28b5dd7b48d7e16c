import { KubeClient } from "@seatrial/kube"
import { Effect } from "effect"
import type { Gathered } from "../gather/gather.ts"
import type { WatchedPod } from "../gather/watched.ts"

const lines = 60
/** Characters of each of its ends that are kept. */
const length = 8_000

/** Tokens of the hub and of ourselves; neither a download nor an engine writes them, so this only guards against what a library might do. */
const withoutSecrets = (text: string) => text.replace(/\b(hf_|seatrial_)[A-Za-z0-9]{8,}/g, "$1…").replace(/(bearer\s+)\S+/gi, "$1…")

/** Why the container does not run, where the node says so. */
const saidByNode = (pod: WatchedPod): string => {
  const container = pod.status?.containerStatuses?.[0]
  const { reason = "", message = "" } = container?.state?.waiting ?? container?.state?.terminated ?? container?.lastState?.terminated ?? pod.status ?? {}
  return [reason, message].filter((part) => part !== "").join(": ")
}

/** What the container that ended last left as its message. */
const saidAtEnd = (pod: WatchedPod): string => {
  const container = pod.status?.containerStatuses?.[0]
  return (container?.lastState?.terminated ?? container?.state?.terminated)?.message ?? ""
}

/** Writes the end of what the containers of a failed run said into our own log: their pods go, and their logs with them. Never fails and never waits for long. */
export const keepLog = Effect.fnUntraced(function* ({ pods, run }: Pick<Gathered, "pods" | "run">, code: string, namespace: string) {
  const kube = yield* KubeClient
  for (const pod of pods) {
    const { name } = pod.metadata
    const read = (previous: boolean) =>
      kube.podLog(name, namespace, { tailLines: lines, ...(previous ? { previous } : {}) }).pipe(
        Effect.timeout("5 seconds"),
        Effect.catch(() => Effect.succeed(""))
      )
    // A container that was started again may have said nothing yet: why the one before ended is in its own log, or in the message that it left.
    const restarted = (pod.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0
    const before = restarted ? (yield* read(true)) || saidAtEnd(pod) : ""
    const log = yield* read(false)
    const parts = [before.slice(-length), saidByNode(pod), log.slice(-length)]
    const text = withoutSecrets(parts.filter((part) => part.trim() !== "").join("\n"))
    if (text === "") continue
    yield* Effect.logWarning(`${run.id} fails with ${code}; the end of what ${name} said:\n${text}`)
  }
})
