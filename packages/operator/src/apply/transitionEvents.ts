import { createHash } from "node:crypto"
import { isStarting } from "@seatrial/domain"
import type { Event } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { objectName } from "../resources/objectNames.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import { eventTime, recordedAnnotation } from "./recordEvent.ts"

/** The minute as an occurrence, for an event that is recorded on a change: at most one in a minute. */
export const minuteOf = (at: number): string => String(Math.floor(at / 60_000))

/** A short hash for `again`. */
export const hashOf = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 12)

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

interface EventContent {
  /**
   * Derived from the content, so that no event is recorded twice, even after a crash between an event and the status.
   */
  readonly name: string
  readonly type: "Normal" | "Warning"
  /** What the operator does, for machines. */
  readonly action: "Deploy" | "Serve" | "Download" | "Create" | "Validate" | "Verify" | "Watch" | "Scale" | "MoveBack"
  readonly reason: string
  readonly message: string
  /** Unix milliseconds. */
  readonly at: number
  /**
   * For an event that may recur: identifies this occurrence. There is then one event of its kind and message for the
   * object, and it counts occurrences.
   */
  readonly again?: string
}

/** The most bytes of a note that an API server accepts are 1,024. */
const noteOf = (message: string): string => Buffer.from(message).subarray(0, 1_000).toString()

/** A Kubernetes event about a custom resource. */
export const aboutResource = ({ metadata }: WatchedDeployment, { action, again, at, message, name, reason, type }: EventContent): Event => {
  const { namespace, uid } = metadata
  const within = namespace === undefined ? {} : { namespace }
  const note = noteOf(message)
  // The note of an event cannot be changed: another message is another event.
  const repeated = `${name}.${uid?.slice(0, 8) ?? "0"}.${hashOf(note).slice(0, 8)}`
  return {
    metadata: again === undefined ? { name, ...within } : { name: repeated, ...within, annotations: { [recordedAnnotation]: again } },
    regarding: {
      apiVersion: "seatrial.dev/v1alpha1",
      kind: "ModelDeployment",
      name: metadata.name,
      ...within,
      ...(uid === undefined ? {} : { uid })
    },
    type,
    reason,
    action,
    note,
    eventTime: eventTime(at),
    reportingController: "seatrial.dev/operator",
    reportingInstance: "seatrial-operator"
  }
}

/**
 * The events of the transitions that the status does not show yet. `cause`: the problem of the run's pods. `together`:
 * one event, with the reason of the last step, names all successful steps.
 */
export const transitionEvents = (run: Run, resource: WatchedDeployment, cause: ModelDeploymentStatus["cause"], together = false): ReadonlyArray<Event> => {
  const { status } = resource
  // An applied object may still show the previous run.
  const shownCount = status?.deploymentId === undefined || status.deploymentId === run.id ? (status?.phases?.length ?? 0) : 0
  const steps = run.history.slice(shownCount).map(({ at, phase, reason }, offset) => {
    const failed = phase === "failed"
    const before = run.history[shownCount + offset - 1]?.phase
    // The run lost its place and returned to the queue. Only the cluster knows why.
    const lost = phase === "queued" && before !== undefined && isStarting(before)
    const why = cause === undefined ? "" : ` (${cause.object}, ${cause.reason}: ${cause.message})`
    const message = failed && run.failure !== null ? `${run.failure.code}: ${run.failure.text}${why}` : `${reason ?? capitalized(phase)}${lost ? why : ""}`
    return { at, failed, message, name: `${objectName(run.id)}.${shownCount + offset}.${phase}`, reason: capitalized(phase) }
  })
  const forward = together ? steps.filter(({ failed }) => !failed) : []
  const last = forward.length > 1 ? forward.at(-1) : undefined
  const alone = last === undefined ? steps : steps.filter(({ failed }) => failed)
  const all =
    last === undefined
      ? []
      : [
          aboutResource(resource, {
            // If more steps have followed the same first step, for example after a crash before the status was written,
            // the event is counted again.
            name: `${objectName(run.id)}.from-${shownCount}`,
            type: "Normal",
            action: "Deploy",
            reason: last.reason,
            message: forward.map(({ message, reason }) => `${reason}: ${message}`).join(" "),
            at: last.at,
            again: last.name
          })
        ]
  const each = alone.map(({ at, failed, message, name, reason }) =>
    aboutResource(resource, { name, type: failed ? "Warning" : "Normal", action: "Deploy", reason, message, at })
  )
  return [...all, ...each]
}

/**
 * The event of a failed GPU, which ends no phase of a serving model. None if the status shows it already. `at`: Unix
 * milliseconds.
 */
export const faultEvents = (run: Run, resource: WatchedDeployment, cause: ModelDeploymentStatus["cause"], at: number): ReadonlyArray<Event> => {
  if (cause?.reason !== "GpuFault") return []
  const text = `${cause.object}: ${cause.message}`
  const { cause: earlierCause, deploymentId } = resource.status ?? {}
  if (deploymentId === run.id && earlierCause?.reason === cause.reason && `${earlierCause.object}: ${earlierCause.message}` === text) return []
  const name = `${objectName(run.id)}.gpufault`
  return [aboutResource(resource, { name, type: "Warning", action: "Watch", reason: cause.reason, message: text, at, again: minuteOf(at) })]
}

/**
 * Events of a download that has progressed by another quarter since the last status, or has just stalled: one for each
 * quarter and for each stall within it. `at`: Unix milliseconds.
 */
export const downloadEvents = (run: Run, resource: WatchedDeployment, download: ModelDeploymentStatus["download"], at: number): ReadonlyArray<Event> => {
  if (download === undefined || run.phase !== "materializing") return []
  const before = resource.status?.deploymentId === run.id ? resource.status.download : undefined
  const quarter = (state: typeof download | undefined) => (state === undefined ? 0 : Math.floor((4 * state.bytes) / Math.max(1, state.totalBytes)))
  const reached = quarter(download)
  const { bytes, bytesPerSecond, secondsLeft, totalBytes } = download
  const progress = `${bytes} of ${totalBytes} bytes`
  const left = secondsLeft === undefined ? "" : `, ${secondsLeft} s left`
  const name = `${objectName(run.id)}.download.${reached}`
  return [
    ...(reached > quarter(before)
      ? [
          aboutResource(resource, {
            name,
            type: "Normal",
            action: "Download",
            reason: "Downloading",
            message: `${progress}, ${bytesPerSecond} bytes/s${left}.`,
            at
          })
        ]
      : []),
    ...(download.stalled === true && before?.stalled !== true
      ? [
          aboutResource(resource, {
            name: `${name}.stalled`,
            type: "Warning",
            action: "Download",
            reason: "DownloadStalled",
            message: `${progress}; nothing arrived for a minute.`,
            at
          })
        ]
      : [])
  ]
}
