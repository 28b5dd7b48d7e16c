import { type HostClass, phaseTraits } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { KubeClient, type KubeObject, type Node } from "@seatrial/kube"
import { type Run, Runs, type ServingPlan } from "@seatrial/store"
import { Clock, Effect, Option } from "effect"
import { bootRestarts } from "../limits.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { resourcePlace } from "../objects/customResource.ts"
import { fetchJob } from "../objects/fetchObjects.ts"
import { wantedPod } from "../objects/wantedPod.ts"
import { heldUntil } from "../observation/heldUntil.ts"
import type { Observation } from "../observation/Observation.ts"
import { type ObservedPod, whichStart } from "../observation/ObservedPod.ts"
import { type PodClass, toPodClass } from "../resources/HostClassResource.ts"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"
import { deploymentLabel, enginePodName, fetchJobName, madeFromAnnotation, objectName, roleLabel } from "../resources/objectNames.ts"
import { admissionOf } from "./admission.ts"
import { type BootVerdicts, observeBoot } from "./BootVerdicts.ts"
import type { Cluster } from "./Cluster.ts"
import { copiesInUse } from "./copiesInUse.ts"
import { readTimes } from "./FutureTimes.ts"
import type { GatherMemory } from "./GatherMemory.ts"
import type { LeaderUptime } from "./LeaderUptime.ts"
import { type MergedAnswers, observeMerged } from "./MergedAnswers.ts"
import { firstContainer, observeCopy } from "./observeCopy.ts"
import { fetchingPod, observeFetch } from "./observeFetch.ts"
import { observeFunding, type UsedUpSince } from "./observeFunding.ts"
import { observePod } from "./observePod.ts"
import { observeWeights, weightsStore } from "./observeWeights.ts"
import { noView } from "./Pool.ts"
import type { WatchedJob, WatchedPod } from "./watched.ts"

/**
 * The result of reading everything that a pass needs. `observe` adds the pool's state at the moment of the decision.
 */
export interface Gathered {
  readonly run: Run
  readonly resource: ModelDeployment | null
  readonly podClass: PodClass | null
  readonly hostClasses: ReadonlyArray<HostClass>
  /** All pods of the run. */
  readonly pods: ReadonlyArray<WatchedPod>
  /** The engine's node; undefined if the engine has none or the node is unknown. */
  readonly node: Node | undefined
  /**
   * The copies of weights that the nodes of the host class must keep, as `seatrial copy-weights` reads them; null if no
   * pod needs the list.
   */
  readonly copiesInUse: string | null
  /** Whether the next engine must serve base and adapter merged, for the comparison of an adapter. */
  readonly merged: Observation["merged"]
  readonly mergedAnswers: MergedAnswers
  readonly bootVerdicts: BootVerdicts
  readonly observe: () => Observation
}

/** Whether the run's engine is, or may soon be, deleted once its requests have ended. */
const givesBack = ({ modelDeleted, modelDisabled, phase, replacedBy, revision }: Run) =>
  phase === "activated" &&
  (modelDeleted || modelDisabled || revision?.status === "superseded" || replacedBy !== null || revision?.settings.hold_seconds !== undefined)

export interface GatherFrom {
  readonly cluster: Cluster
  readonly memory: GatherMemory
  readonly usedUpSince: UsedUpSince
  readonly uptime: LeaderUptime
  readonly settings: Parameters<typeof fetchJob>[0]["settings"] & Pick<OperatorSettings, "keepFinishedDays" | "unpaidGraceSeconds" | "weightsClaim">
}

const logTail = 200
/** How long to wait for a watch to show a created object, milliseconds. */
const watchTimeoutMillis = 10_000
const dayMillis = 86_400_000

const isOutdated = (madeFrom: string, wanted: KubeObject | null): boolean => wanted !== null && wanted.metadata.annotations?.[madeFromAnnotation] !== madeFrom

/**
 * Whether the operator would create a different Job now, for example because the address of the hub has changed. A Job
 * without the annotation is never outdated.
 */
const isOldFetch = (job: WatchedJob | undefined, { revision, ...run }: Run, podClass: PodClass | null, settings: GatherFrom["settings"]): boolean => {
  const madeFrom = job?.metadata.annotations?.[madeFromAnnotation]
  if (madeFrom === undefined || revision === null || podClass === null) return false
  const weightsClaim = podClass.weightsClaim ?? settings.weightsClaim
  return isOutdated(madeFrom, fetchJob({ run: { ...run, revision }, revision, settings, weightsClaim, owner: null }, false))
}

/**
 * Whether the run's decisions depend on free GPUs and on the queue: it is on its way to GPUs, or may have lost them.
 */
const isPlaced = ({ phase, revision }: Run, pod: ObservedPod | null): boolean =>
  phase === "materializing" ||
  phase === "waiting" ||
  phase === "queued" ||
  (phase === "screening" && revision !== null) ||
  (phase === "provisioning" && (pod === null || pod.unschedulable !== null))

/**
 * Whether this is the host class of the plan. A class that was created again with other GPUs is not: nothing was
 * estimated or verified for it.
 */
const isChosen = ({ gpu_count, gpu_pool, name }: HostClass, plan: Pick<ServingPlan, "estimate" | "settings"> | null): boolean =>
  plan !== null && name === plan.settings.host_class && gpu_pool === plan.estimate.gpu_pool && gpu_count === plan.estimate.gpu_count

/**
 * The host classes that can take the run now: allowed by its request, present, and with the store that holds or gets
 * the run's weights.
 */
const classOptions = (run: Run, own: PodClass | null, classes: ReadonlyArray<PodClass>, settings: Pick<OperatorSettings, "namespace" | "weightsClaim">) =>
  run.placements.flatMap((plan) => {
    const podClass = classes.find(({ hostClass, nodes, queueName }) => nodes === 1 && queueName === null && isChosen(hostClass, plan))
    if (podClass === undefined) return []
    const sharesStore = own !== null && weightsStore(own, settings) === weightsStore(podClass, settings)
    return sharesStore || observeWeights(run, podClass, settings) !== null ? [{ plan, podClass }] : []
  })

/**
 * Since when the pod's node does not respond. The time of a missing node starts when it was first missed: it may
 * return, for example if the kubelet registers it again.
 */
const downSince = (
  nodeless: GatherMemory["nodeless"],
  id: Run["id"],
  { nodeDownSince, uid }: ObservedPod,
  node: Option.Option<Node>,
  now: number
): number | null => {
  const before = nodeless.get(id)
  nodeless.delete(id)
  if (nodeDownSince === null || Option.isSome(node)) return nodeDownSince
  const since = before?.uid === uid ? Math.min(before.since, now) : now
  nodeless.set(id, { uid, since })
  return Math.max(nodeDownSince, since)
}

/** The times of a pod from which something is counted. */
const timesOf = ({ copy, createdAt, merge, nodeDownSince, readyChangedAt, scheduledAt, startedAt, unschedulable }: ObservedPod) => [
  createdAt,
  scheduledAt,
  startedAt,
  readyChangedAt,
  nodeDownSince,
  unschedulable?.since ?? null,
  copy?.endedAt ?? null,
  merge?.endedAt ?? null
]

/** The end of the log of a running download or copy; empty if the node does not return it at once. */
const readLog = Effect.fnUntraced(function* (pod: string, namespace: string, container?: string) {
  const kube = yield* KubeClient
  return yield* kube.podLog(pod, namespace, { tailLines: 5, ...(container === undefined ? {} : { container }) }).pipe(
    Effect.timeout("2 seconds"),
    Effect.catch(() => Effect.succeed(""))
  )
})

/**
 * The last output of the container that ended last. If the container runs again, the log already belongs to its new
 * start.
 */
const lastWords = (pod: WatchedPod | undefined): string => {
  const container = pod?.status?.containerStatuses?.[0]
  return (container?.state?.terminated ?? container?.lastState?.terminated)?.message ?? ""
}

/** The custom resource that shows the run. An applied object counts only while the run is bound to it. */
const resourceOf = Effect.fnUntraced(function* (cluster: Cluster, run: Run) {
  if (run.applied !== null && run.applied.current === null) return null
  const place = resourcePlace(run, cluster.namespace)
  const observed = Option.getOrNull(yield* cluster.deployments.get(place.name, place.namespace))
  return run.applied === null || observed?.metadata.uid === run.applied.current?.uid ? observed : null
})

/** Reads the state of the world once for one run. */
export const gather = Effect.fnUntraced(function* (
  { cluster, memory, settings, uptime, usedUpSince }: GatherFrom,
  run: Run
): Effect.fn.Return<Gathered, never, KubeClient | Runs> {
  const kube = yield* KubeClient
  const { background, blocked, bootVerdicts, budgetExpectations, futureTimes, mergedAnswers, nodeless, podExpectations, pool, released, withdrawn } = memory
  const { namespace } = cluster
  const now = yield* Clock.currentTimeMillis
  const resource = yield* resourceOf(cluster, run)
  const job = Option.getOrUndefined(yield* cluster.jobs.get(fetchJobName(run.id), namespace))
  const own = yield* cluster.pods.listByLabel(deploymentLabel, run.id)
  const engines = run.engineRun === run.id ? own : yield* cluster.pods.listByLabel(deploymentLabel, run.engineRun)
  const podName = enginePodName(run.engineRun)
  const enginePod = engines.find((pod: WatchedPod) => pod.metadata.name === podName)
  // The pod was created but is not visible yet. The decision may be made without it, so its appearance must trigger a
  // pass.
  if (enginePod === undefined && podExpectations.has(podName)) podExpectations.set(podName, undefined)
  const node = enginePod?.spec?.nodeName === undefined ? Option.none() : yield* cluster.nodes.get(enginePod.spec.nodeName)
  const classes = (yield* cluster.hostClasses.list()).flatMap((object) => Option.toArray(toPodClass(object)))
  const podClass = classes.find(({ hostClass }) => isChosen(hostClass, run.revision)) ?? null
  const observed = enginePod === undefined ? null : observePod(enginePod, Option.getOrUndefined(node))
  const timed = observed === null ? null : { ...observed, nodeDownSince: downSince(nodeless, run.id, observed, node, now) }
  if (timed === null) nodeless.delete(run.id)
  const copyLog =
    timed?.copy?.running === true ? yield* readLog(timed.name, namespace, (enginePod === undefined ? null : firstContainer(enginePod)) ?? undefined) : ""
  const pod = enginePod === undefined || timed === null ? null : { ...timed, copy: observeCopy(enginePod, copyLog) }
  const copies = pod === null ? (podClass?.weightsCache?.claimName ?? null) : null
  const places = isPlaced(run, pod)
  const options = places && pod === null ? classOptions(run, podClass, classes, settings) : []
  const reservations = places ? yield* (yield* Runs).reservations : []
  const { with: begunWith, ...work } = yield* background.state(run.id)

  const fetching = own.filter((candidate: WatchedPod) => candidate.metadata.labels?.[roleLabel] === "fetch")
  const fetched = run.phase === "materializing" ? fetchingPod(fetching) : undefined
  const fetchLog = fetched === undefined ? "" : yield* readLog(fetched.metadata.name, namespace)

  const failedStart = phaseTraits[run.phase].engineRuns && pod !== null && !pod.ready && pod.restarts >= bootRestarts
  const bootLog = failedStart
    ? `${lastWords(enginePod)}\n${yield* Effect.catch(kube.podLog(pod.name, namespace, { tailLines: logTail }), () => Effect.succeed(""))}`
    : null

  const funding = yield* observeFunding(usedUpSince, run, { isPlaced: places, hasPod: pod !== null, graceMillis: settings.unpaidGraceSeconds * 1_000, now })
  if ((!givesBack(run) && (funding === null || run.phase !== "activated")) || pod === null || run.endpoints.length > 0) withdrawn.delete(run.id)
  else withdrawn.set(run.id, Math.min(withdrawn.get(run.id) ?? now, now))

  if (pod === null || pod.blocked === null) blocked.delete(run.id)
  else blocked.set(run.id, Math.min(blocked.get(run.id) ?? now, now))

  const boot = observeBoot(bootVerdicts, run, podClass, pod)
  const times = readTimes(futureTimes, run.id, now)
  const { at } = times
  at(`phase ${run.history.length}`, run.phaseSince)
  for (const time of [run.endedAt, run.lastUsedAt, boot?.verdict?.at ?? null, ...(pod === null ? [] : timesOf(pod))])
    if (time !== null) at(pod?.uid ?? "", time)

  const merged = observeMerged(mergedAnswers, run)
  const holder = run.predecessor === null ? Option.none() : yield* cluster.pods.get(enginePodName(run.predecessor.run), namespace)
  const observation = {
    run,
    admission: pod?.gated === true ? yield* admissionOf(pod.uid, namespace) : null,
    funding,
    predecessorHolds: Option.isSome(holder),
    outdated: pod !== null && !pod.started && pod.madeFrom !== null && isOutdated(pod.madeFrom, wantedPod(run, podClass, settings, { merged })),
    budget:
      Math.abs(now - (budgetExpectations.get(run.id) ?? Number.NEGATIVE_INFINITY)) < watchTimeoutMillis ||
      Option.isSome(yield* cluster.budgets.get(objectName(run.id), namespace)),
    resource: resource === null ? null : { uid: resource.metadata.uid ?? "", shownPhase: resource.status?.phase ?? null },
    shownSince: Math.max(0, ...(resource?.status?.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime) || 0)),
    keepFinished: settings.keepFinishedDays === 0 ? null : settings.keepFinishedDays * dayMillis,
    podClass,
    engine: run.revision === null ? null : (engineFor(run.revision.settings.runtime) ?? null),
    weights: observeWeights(run, podClass, settings),
    fetch: observeFetch(job, fetching, fetchLog, isOldFetch(job, run, podClass, settings), (time) => at("fetch", time)),
    pod,
    merged,
    boot,
    blockedSince: blocked.get(run.id) ?? null,
    bootLog,
    work,
    sameStart: work.running !== null && begunWith === whichStart(pod),
    withdrawnAt: withdrawn.get(run.id) ?? null,
    firstReadings: times.firstReadings,
    leadingSince: uptime.since(now),
    released: released.has(run.id)
  }
  return {
    run,
    resource,
    podClass,
    hostClasses: classes.filter(({ nodes }) => nodes === 1).map(({ hostClass }) => hostClass),
    pods: engines === own ? own : [...own, ...engines],
    node: Option.getOrUndefined(node),
    copiesInUse: copies === null ? null : copiesInUse(yield* cluster.pods.list(), copies, now),
    merged,
    mergedAnswers,
    bootVerdicts,
    observe: () => ({
      ...observation,
      elsewhere:
        podClass !== null &&
        (podClass.autoscaling || pool.ledger.hasOtherNode(podClass, [enginePod?.spec?.nodeName ?? "", ...run.nodeFaults.map(({ node: failed }) => failed)])),
      candidates: run.candidates.flatMap(({ endedAt, gpus, holdSeconds, run: candidate }) => {
        const [pod, until] = [enginePodName(candidate), heldUntil(endedAt, holdSeconds)]
        if (now >= until || !pool.ledger.hasPod(pod)) return []
        return [{ run: candidate, pod, gpus, until, inPlace: podClass !== null && pool.ledger.noPlaceOf(podClass, pod) === null }]
      }),
      predecessorPlace: podClass === null || Option.isNone(holder) ? null : pool.ledger.noPlaceOf(podClass, holder.value.metadata.name),
      ...(places ? pool.view({ run, podClass, classes, options, reservations }) : noView)
    })
  }
})
