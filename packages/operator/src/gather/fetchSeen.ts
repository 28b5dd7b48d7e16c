import { FailureCode, type NamedFailure, RefusalCode } from "@seatrial/domain"
import { readProgress } from "@seatrial/hub"
import type { Job, Pod } from "@seatrial/kube"
import { Option, Schema } from "effect"
import { FetchSeen } from "../decide/Observation.ts"

/** What `seatrial fetch` may name as the cause in its last line. */
const codes = FailureCode.pick(["weights_mismatch", "weights_store_full", "hub_unavailable", ...RefusalCode.literals])
const decodeCode = Schema.decodeUnknownOption(codes)

const unexplained: NamedFailure = {
  code: "download_failed",
  text: "The download ended without naming a cause. What it said last is in the log of Seatrial's operator."
}

const codeOf = (line: string): string => line.slice(0, Math.max(0, line.indexOf(": ")))

/**
 * The cause that a download's container left among its last words, `<code>: <text>`. The command indents it; and it comes by another pipe than the lines of progress, so
 * that those which were written before it may follow it.
 */
const lastWords = (message: string): NamedFailure | null => {
  const line = message
    .split("\n")
    .map((each) => each.trim())
    .findLast((each) => Option.isSome(decodeCode(codeOf(each))))
  const code = Option.getOrNull(decodeCode(codeOf(line ?? "")))
  if (line === undefined || code === null) return null
  return { code, text: line.slice(code.length + 2, code.length + 402).replace(/\p{Cc}/gu, " ") }
}

/** The pod of a download whose log says how it goes on. */
export const fetchingPod = (pods: ReadonlyArray<Pod>): Pod | undefined =>
  pods.find(({ status }) => status?.phase === "Running" && status.containerStatuses?.[0]?.state?.running !== undefined)

/** The download Job in the words of the decisions; `pods` are the Job's own, `log` is the end of what it says. */
export const fetchSeen = (job: Job | undefined, pods: ReadonlyArray<Pod>, log = ""): FetchSeen => {
  if (job === undefined) return FetchSeen.Absent()
  if (job.metadata.deletionTimestamp !== undefined) return FetchSeen.Leaving()
  const holds = (name: string) => job.status?.conditions?.find(({ type, status }) => type === name && status === "True")
  if (holds("Complete") !== undefined) return FetchSeen.Succeeded()
  const failed = holds("Failed")
  if (failed === undefined) {
    const waiting = pods
      .map((pod) => pod.status?.containerStatuses?.[0]?.state?.waiting?.reason)
      .find((reason) => reason !== undefined && reason !== "ContainerCreating")
    return FetchSeen.Active({ problem: waiting ?? null, progress: readProgress(log) })
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
