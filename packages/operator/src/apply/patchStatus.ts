import { isDeepStrictEqual } from "node:util"
import { isFinished, type RunProgress } from "@seatrial/domain"
import { KubeClient, type Node } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Duration, Effect, Option } from "effect"
import { cut } from "../gather/gpuFault.ts"
import { manyWait, statusPause, statusPauseEach, statusPauseMost } from "../limits.ts"
import type { ObservedFetch } from "../observation/ObservedFetch.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import type { Refusal } from "../observation/Refusal.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { editEvents, editProblem } from "./editProblem.ts"
import { isStale } from "./ignoreNotFound.ts"
import { obstacleEvents, refusalEvents } from "./obstacleEvents.ts"
import { recordEvent, recordedAnnotation } from "./recordEvent.ts"
import { rootCause } from "./rootCause.ts"
import type { EngineCounts } from "./scaleStatus.ts"
import { servingEvents } from "./servingEvents.ts"
import { statusOf } from "./statusOf.ts"
import { downloadEvents, faultEvents, transitionEvents } from "./transitionEvents.ts"

/**
 * The last status that was written for a run: when (Unix milliseconds), the resulting version of the custom resource,
 * and the events that were recorded since, so that a repeated pass continues after a failure.
 */
export interface StatusWrite {
  readonly at: number
  readonly version: string | undefined
  readonly recorded?: ReadonlySet<string>
}

/** The last status write of each run. Kept only in memory. */
export type StatusWrites = Map<Run["id"], StatusWrite>

interface PatchInput {
  readonly statusWrites: StatusWrites
  /** Runs that wait for a pass. */
  readonly backlog: number
  readonly run: Run
  readonly pod: ObservedPod | null
  /** All pods of the run. */
  readonly pods: ReadonlyArray<WatchedPod>
  readonly engines: EngineCounts
  readonly fetch: ObservedFetch
  /** The node of the engine. */
  readonly node: Node | undefined
  readonly progress: RunProgress
  readonly resource: WatchedDeployment
  /** The object that the API server refuses; null if it refuses none. */
  readonly refusal: Refusal | null
  /** The progress message for the cluster administrator. */
  readonly message: string
  readonly idle: boolean
  /** See `fundingReason`. */
  readonly unfunded: string | null
  readonly withheld: string | null
  readonly stopped: string | null
  readonly suspicion: string | null
  readonly classGone: boolean
  readonly now: number
}

/** After a write conflict. The watch is usually faster. */
const soon = Option.some(Duration.seconds(1))

/** The last write of the run's status. A time in the future was recorded before the clock was set back. */
const lastWrite = ({ now, run, statusWrites }: PatchInput): StatusWrite | undefined => {
  const last = statusWrites.get(run.id)
  return last === undefined || last.at <= now ? last : { ...last, at: now - statusPauseMost }
}

/**
 * How long to wait before the next write, milliseconds; at most 0 if the status may be written now. Frequent changes of
 * an unfinished run are written once: the status contains each phase with its time anyway. The first write waits only
 * if many runs wait for a pass.
 */
const pauseBefore = ({ backlog, now, resource, run, statusWrites }: PatchInput, last: StatusWrite | undefined): number => {
  const isFirst = last === undefined || last.at === Number.NEGATIVE_INFINITY
  const mayWait = backlog > manyWait
  if (isFirst && mayWait) statusWrites.set(run.id, { ...last, at: now, version: last?.version ?? resource.metadata.resourceVersion })
  if (isFinished(run.phase) || (isFirst && !mayWait)) return 0
  const since = isFirst ? now : last.at
  return since + Math.min(statusPauseMost, Math.max(statusPause, backlog * statusPauseEach)) - now
}

/** Records the events that the new status brings and that no earlier attempt recorded. */
const recordEvents = Effect.fnUntraced(function* (input: PatchInput, status: ModelDeploymentStatus, earlier: StatusWrite["recorded"], invalid: string | null) {
  const { backlog, fetch, now, pod, refusal, resource, run, statusWrites } = input
  const recorded = new Set(earlier)
  for (const event of [
    ...faultEvents(run, resource, status.cause, now),
    ...transitionEvents(run, resource, status.cause, backlog > manyWait),
    ...downloadEvents(run, resource, status.download, now),
    ...servingEvents({ run, resource, status, pod, now }),
    ...obstacleEvents(run, resource, fetch, now),
    ...refusalEvents(run, resource, refusal, now),
    ...editEvents(resource, invalid, now)
  ]) {
    const { annotations = {}, name } = event.metadata
    const what = `${name} ${annotations[recordedAnnotation] ?? ""}`
    if (recorded.has(what)) continue
    yield* recordEvent(event)
    recorded.add(what)
    statusWrites.set(run.id, { at: Number.NEGATIVE_INFINITY, version: undefined, ...statusWrites.get(run.id), recorded })
  }
})

const writeStatus = Effect.fnUntraced(function* ({ now, resource, run, statusWrites }: PatchInput, status: ModelDeploymentStatus) {
  const kube = yield* KubeClient
  const { name, namespace, resourceVersion } = resource.metadata
  const object = {
    apiVersion: "seatrial.dev/v1alpha1",
    kind: "ModelDeployment",
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    status
  }
  return yield* kube.applyStatus(WatchedDeployment, object).pipe(
    Effect.map(({ metadata }) => {
      statusWrites.set(run.id, { at: now, version: metadata.resourceVersion })
      return Option.none<Duration.Duration>()
    }),
    Effect.catchIf(isStale, () => Effect.succeed(soon))
  )
})

/** The API server's answer for a refused object. */
const refusalCause = (refusal: Refusal | null): ModelDeploymentStatus["cause"] =>
  refusal === null ? undefined : { reason: refusal.reason, message: cut(refusal.message), object: refusal.object }

/** The cause of the run's problem. A failed run has no pods any more, so its recorded cause stays. */
const causeOf = ({ node, pod, pods, refusal, resource: { status: before }, run }: PatchInput): ModelDeploymentStatus["cause"] =>
  refusalCause(refusal) ??
  rootCause(pods, pod !== null && pod.nodeDownSince !== null, node) ??
  (run.phase === "failed" && before?.deploymentId === run.id ? before.cause : undefined)

/**
 * Updates the custom resource if its status differs: first an event for each transition, then the status. Returns the
 * delay until the next attempt if the compared copy was stale, or if the status of a working run was written a moment
 * ago.
 */
export const patchStatus = Effect.fn("patchStatus")(function* (input: PatchInput) {
  const { resource, run } = input
  const { download, queue } = input.progress
  const generation = resource.metadata.generation ?? 1
  const invalid = editProblem(run, resource)
  const status = statusOf({ ...input, invalid, queue, download, cause: causeOf(input), generation, before: resource.status })
  // Both are plain JSON, and most passes end here. Effect's own comparison takes ten times as long.
  if (resource.status !== undefined && isDeepStrictEqual(resource.status, status)) return Option.none()
  const last = lastWrite(input)
  const pause = pauseBefore(input, last)
  if (pause > 0) return Option.some(Duration.millis(pause))
  yield* recordEvents(input, status, last?.recorded, invalid)
  return yield* writeStatus(input, status)
})
