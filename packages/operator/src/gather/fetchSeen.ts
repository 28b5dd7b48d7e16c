import { type Failure, RefusalCode } from "@seatrial/domain"
import type { Job, Pod } from "@seatrial/kube"
import { FetchSeen } from "../decide/Observation.ts"

/** What `seatrial fetch` may name as the cause in its last line. */
const codes = new Set<string>(["weights_mismatch", "weights_incomplete", "hub_unavailable", "storage_full", ...RefusalCode.literals])

const unexplained: Failure = {
  code: "download_failed",
  text: "The download ended without naming a cause. What it said last is in the log of Seatrial's operator."
}

/** The cause that a download's container left as its last words, `<code>: <text>`; the command indents them. */
const lastWords = (message: string): Failure | null => {
  const line = message.trimEnd().split("\n").at(-1)?.trimStart() ?? ""
  const colon = line.indexOf(": ")
  const code = line.slice(0, Math.max(0, colon))
  return codes.has(code) ? { code, text: line.slice(colon + 2, colon + 402).replace(/\p{Cc}/gu, " ") } : null
}

/** The download Job in the words of the decisions; `pods` are the Job's own. */
export const fetchSeen = (job: Job | undefined, pods: ReadonlyArray<Pod>): FetchSeen => {
  if (job === undefined) return FetchSeen.Absent()
  if (job.metadata.deletionTimestamp !== undefined) return FetchSeen.Leaving()
  const holds = (name: string) => job.status?.conditions?.find(({ type, status }) => type === name && status === "True")
  if (holds("Complete") !== undefined) return FetchSeen.Succeeded()
  const failed = holds("Failed")
  if (failed === undefined) {
    const waiting = pods
      .map((pod) => pod.status?.containerStatuses?.[0]?.state?.waiting?.reason)
      .find((reason) => reason !== undefined && reason !== "ContainerCreating")
    return FetchSeen.Active({ problem: waiting ?? null })
  }
  const said = pods
    .flatMap((pod) => {
      const status = pod.status?.containerStatuses?.[0]
      const exit = status?.state?.terminated ?? status?.lastState?.terminated
      return exit?.message === undefined ? [] : [{ at: exit.finishedAt ?? "", message: exit.message }]
    })
    .sort((a, b) => (a.at < b.at ? 1 : -1))
    .map(({ message }) => lastWords(message))
    .find((failure) => failure !== null)
  if (said !== undefined) return FetchSeen.Failed({ failure: said })
  const late = failed.reason === "DeadlineExceeded"
  return FetchSeen.Failed({ failure: late ? { code: "download_failed", text: "The download did not end within its time limit." } : unexplained })
}
