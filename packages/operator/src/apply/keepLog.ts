import { KubeClient, type Pod } from "@seatrial/kube"
import { Effect } from "effect"
import type { Gathered } from "../gather/gather.ts"

const lines = 60
/** Characters of one container that are kept. */
const length = 8_000

/** Tokens of the hub and of ourselves; neither a download nor an engine writes them, so this only guards against what a library might do. */
const withoutSecrets = (text: string) => text.replace(/\b(hf_|seatrial_)[A-Za-z0-9]{8,}/g, "$1…").replace(/(bearer\s+)\S+/gi, "$1…")

/** Why the container does not run, where the node says so. */
const saidByNode = (pod: Pod): string => {
  const container = pod.status?.containerStatuses?.[0]
  const { reason = "", message = "" } = container?.state?.waiting ?? container?.state?.terminated ?? container?.lastState?.terminated ?? pod.status ?? {}
  return [reason, message].filter((part) => part !== "").join(": ")
}

/** Writes the end of what the containers of a failed run said into our own log: their pods go, and their logs with them. Never fails and never waits for long. */
export const keepLog = Effect.fnUntraced(function* ({ pods, run }: Gathered, code: string, namespace: string) {
  const kube = yield* KubeClient
  for (const pod of pods) {
    const { name } = pod.metadata
    const log = yield* kube.podLog(name, namespace, { tailLines: lines }).pipe(
      Effect.timeout("5 seconds"),
      Effect.catch(() => Effect.succeed(""))
    )
    const text = withoutSecrets([saidByNode(pod), log].filter((part) => part !== "").join("\n")).slice(-length)
    if (text === "") continue
    yield* Effect.logWarning(`${run.id} fails with ${code}; the end of what ${name} said:\n${text}`)
  }
})
