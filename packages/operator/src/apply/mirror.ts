import { isDeepStrictEqual } from "node:util"
import { isFinished, type RunProgress } from "@seatrial/domain"
import { KubeClient, type Node } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Duration, Effect, Option } from "effect"
import { inFieldNames, toldRun } from "../applied/inFieldNames.ts"
import { manyWait, statusPause, statusPauseEach, statusPauseMost } from "../decide/limits.ts"
import type { FetchSeen, PodSeen } from "../decide/Observation.ts"
import type { WatchedPod } from "../gather/watched.ts"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { obstacleEvents } from "./obstacleEvents.ts"
import { rootCause } from "./rootCause.ts"
import { servingEvents } from "./servingEvents.ts"
import { statusOf } from "./statusOf.ts"
import { tellEvent, toldAnnotation } from "./tellEvent.ts"
import { downloadEvents, faultEvents, transitionEvents } from "./transitionEvents.ts"

/**
 * The status that was written of each run last: when, Unix milliseconds, and which version of its custom resource that made; and which events were told since, so that a
 * pass that is repeated goes on where the one before it failed. Only a memory.
 */
export type Shown = Map<Run["id"], { readonly at: number; readonly version: string | undefined; readonly told?: ReadonlySet<string> }>

interface MirrorInput {
  readonly shown: Shown
  /** Runs that wait for a pass. */
  readonly backlog: number
  readonly run: Run
  readonly pod: PodSeen | null
  /** All pods of the run. */
  readonly pods: ReadonlyArray<WatchedPod>
  readonly fetch: FetchSeen
  /** The engine's. */
  readonly node: Node | undefined
  readonly progress: RunProgress
  readonly resource: ModelDeployment
  /** For the cluster's own people: what the progress says, in the cluster's words. */
  readonly message: string
  readonly idle: boolean
  readonly withheld: string | null
  readonly classGone: boolean
  readonly now: number
}

/** After a write that met a newer version; the watch is usually quicker. */
const soon = Option.some(Duration.seconds(1))

/**
 * Shows the run in its custom resource, where that says something else: an event for each transition, then the status. Gives the time after which to try again: where
 * the copy that was compared with was an old one, and where a run that is at work was shown a moment ago.
 */
export const mirror = Effect.fn("mirror")(function* ({
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
  withheld,
  ...said
}: MirrorInput) {
  const run = toldRun(said.run)
  const inItsWords = (text: string) => (run.applied === null ? text : inFieldNames(text))
  const message = inItsWords(said.message)
  const { download, queue } = progress
  const kube = yield* KubeClient
  const { metadata, status: before } = resource
  // A run that has failed has no pods any more: what they said stays.
  const kept = run.phase === "failed" && before?.deploymentId === run.id ? before.cause : undefined
  const cause = rootCause(pods, pod !== null && pod.nodeDownSince !== null, node) ?? kept
  const status = statusOf({ run, pod, idle, withheld, classGone, message, cause, queue, download, generation: metadata.generation ?? 1, before, now })
  // Both are plain JSON, and most looks end here: Effect's own comparison takes ten times as long.
  if (resource.status !== undefined && isDeepStrictEqual(resource.status, status)) return Option.none()
  // What changes many times a second is written once: each phase with its time is in the status all the same.
  const last = shown.get(run.id)
  // One that lies in the future was written before the clock was set back.
  const written = last === undefined || last.at <= now ? last : { ...last, at: now - statusPauseMost }
  const first = written === undefined || written.at === Number.NEGATIVE_INFINITY
  if (first && backlog > manyWait) shown.set(run.id, { ...written, at: now, version: written?.version ?? metadata.resourceVersion })
  const since = first ? (backlog > manyWait ? now : Number.NEGATIVE_INFINITY) : written.at
  const pause = isFinished(run.phase) ? 0 : since + Math.min(statusPauseMost, Math.max(statusPause, backlog * statusPauseEach)) - now
  if (pause > 0) return Option.some(Duration.millis(pause))
  const told = new Set(written?.told)
  for (const event of [
    ...faultEvents(run, resource, cause, now),
    ...transitionEvents(run, resource, cause, backlog > manyWait),
    ...downloadEvents(run, resource, status.download, now),
    ...servingEvents({ run, resource, status, pod, now }),
    ...obstacleEvents(run, resource, fetch, now)
  ]) {
    const { annotations = {}, name } = event.metadata
    const what = `${name} ${annotations[toldAnnotation] ?? ""}`
    if (told.has(what)) continue
    yield* tellEvent(event)
    told.add(what)
    shown.set(run.id, { at: Number.NEGATIVE_INFINITY, version: undefined, ...shown.get(run.id), told })
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
