import { isDeepStrictEqual } from "node:util"
import { isFinished, type RunProgress } from "@seatrial/domain"
import { KubeClient, type Node } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Duration, Effect, Option } from "effect"
import { inFieldNames, withFieldNames } from "../applied/fieldNames.ts"
import type { WatchedPod } from "../gather/watched.ts"
import { manyWait, statusPause, statusPauseEach, statusPauseMost } from "../limits.ts"
import type { ObservedFetch } from "../observation/ObservedFetch.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { obstacleEvents } from "./obstacleEvents.ts"
import { recordEvent, recordedAnnotation } from "./recordEvent.ts"
import { rootCause } from "./rootCause.ts"
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
export type Shown = Map<Run["id"], StatusWrite>

interface MirrorInput {
  readonly shown: Shown
  /** Runs that wait for a pass. */
  readonly backlog: number
  readonly run: Run
  readonly pod: ObservedPod | null
  /** All pods of the run. */
  readonly pods: ReadonlyArray<WatchedPod>
  readonly fetch: ObservedFetch
  /** The node of the engine. */
  readonly node: Node | undefined
  readonly progress: RunProgress
  readonly resource: ModelDeployment
  /** The progress message for the cluster's operator. */
  readonly message: string
  readonly idle: boolean
  /** See `fundingReason`. */
  readonly unfunded: string | null
  readonly withheld: string | null
  readonly classGone: boolean
  readonly now: number
}

/** After a write conflict. The watch is usually faster. */
const soon = Option.some(Duration.seconds(1))

/**
 * Updates the custom resource if its status differs: first an event for each transition, then the status. Returns the
 * delay until the next attempt if the compared copy was stale, or if the status of a working run was written a moment
 * ago.
 */
export const patchStatus = Effect.fn("patchStatus")(function* ({
  backlog,
  classGone,
  fetch,
  idle,
  node,
  now,
  pod,
  pods,
  progress,
  resource,
  shown,
  unfunded,
  withheld,
  ...said
}: MirrorInput) {
  const run = withFieldNames(said.run)
  const inOwnFieldNames = (text: string) => (run.applied === null ? text : inFieldNames(text))
  const message = inOwnFieldNames(said.message)
  const { download, queue } = progress
  const kube = yield* KubeClient
  const { metadata, status: before } = resource
  // A failed run has no pods any more, so the recorded cause stays.
  const storedCause = run.phase === "failed" && before?.deploymentId === run.id ? before.cause : undefined
  const cause = rootCause(pods, pod !== null && pod.nodeDownSince !== null, node) ?? storedCause
  const status = statusOf({ run, pod, idle, unfunded, withheld, classGone, message, cause, queue, download, generation: metadata.generation ?? 1, before, now })
  // Both are plain JSON, and most passes end here. Effect's own comparison takes ten times as long.
  if (resource.status !== undefined && isDeepStrictEqual(resource.status, status)) return Option.none()
  // Frequent changes are written once. The status contains each phase with its time anyway.
  const last = shown.get(run.id)
  // A time in the future was written before the clock was set back.
  const written = last === undefined || last.at <= now ? last : { ...last, at: now - statusPauseMost }
  const first = written === undefined || written.at === Number.NEGATIVE_INFINITY
  if (first && backlog > manyWait) shown.set(run.id, { ...written, at: now, version: written?.version ?? metadata.resourceVersion })
  const since = first ? (backlog > manyWait ? now : Number.NEGATIVE_INFINITY) : written.at
  const pause = isFinished(run.phase) ? 0 : since + Math.min(statusPauseMost, Math.max(statusPause, backlog * statusPauseEach)) - now
  if (pause > 0) return Option.some(Duration.millis(pause))
  const recorded = new Set(written?.recorded)
  for (const event of [
    ...faultEvents(run, resource, cause, now),
    ...transitionEvents(run, resource, cause, backlog > manyWait),
    ...downloadEvents(run, resource, status.download, now),
    ...servingEvents({ run, resource, status, pod, now }),
    ...obstacleEvents(run, resource, fetch, now)
  ]) {
    const { annotations = {}, name } = event.metadata
    const what = `${name} ${annotations[recordedAnnotation] ?? ""}`
    if (recorded.has(what)) continue
    yield* recordEvent(event)
    recorded.add(what)
    shown.set(run.id, { at: Number.NEGATIVE_INFINITY, version: undefined, ...shown.get(run.id), recorded })
  }
  const { name, namespace, resourceVersion } = resource.metadata
  const object = {
    apiVersion: "seatrial.dev/v1alpha1",
    kind: "ModelDeployment",
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    status
  }
  return yield* kube.applyStatus(ModelDeployment, object).pipe(
    Effect.map(({ metadata }) => {
      shown.set(run.id, { at: now, version: metadata.resourceVersion })
      return Option.none<Duration.Duration>()
    }),
    Effect.catchIf(
      (error) => error.reason === "Conflict" || error.reason === "NotFound",
      () => Effect.succeed(soon)
    )
  )
})
