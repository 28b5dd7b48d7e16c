import type { HostClass } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { KubeClient, type KubeObject, type Node } from "@seatrial/kube"
import { type Run, Runs, type ServingPlan } from "@seatrial/store"
import { Clock, Effect, Option } from "effect"
import { resourcePlace } from "../apply/customResource.ts"
import { fetchJob } from "../apply/fetchObjects.ts"
import { wantedPod } from "../apply/wantedPod.ts"
import { copiesInUse } from "../apply/weightsCopy.ts"
import { heldUntil } from "../decide/heldCandidates.ts"
import { bootRestarts } from "../decide/limits.ts"
import { type Observation, type PodSeen, whichStart } from "../decide/Observation.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { type PodClass, toPodClass } from "../resources/HostClassResource.ts"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"
import { deploymentLabel, enginePodName, fetchJobName, madeFromAnnotation, objectName, roleLabel } from "../resources/objectNames.ts"
import type { Background } from "../work/Background.ts"
import type { Attendance } from "./Attendance.ts"
import { admissionOf } from "./admission.ts"
import { type BootVerdicts, bootSeen } from "./BootVerdicts.ts"
import type { Cluster } from "./Cluster.ts"
import { copySeen, firstContainer } from "./copySeen.ts"
import { type FutureTimes, lookAtTimes } from "./FutureTimes.ts"
import { fetchingPod, fetchSeen } from "./fetchSeen.ts"
import { type MergedAnswers, mergedSeen } from "./MergedAnswers.ts"
import { noView, type Pool } from "./Pool.ts"
import { podSeen } from "./podSeen.ts"
import type { WatchedJob, WatchedPod } from "./watched.ts"
import { weightsSeen, weightsStore } from "./weightsSeen.ts"

/** What a pass reads, before the pool is asked: `observe` adds that in the same instant as the decision is made. */
export interface Gathered {
  readonly run: Run
  readonly resource: ModelDeployment | null
  readonly podClass: PodClass | null
  readonly hostClasses: ReadonlyArray<HostClass>
  /** All pods of the run. */
  readonly pods: ReadonlyArray<WatchedPod>
  /** The engine's; undefined where it has none, or none is known of that name. */
  readonly node: Node | undefined
  /** Which copies of weights the nodes of its host class have to keep, in the words of `seatrial copy-weights`; null where nobody has to be told. */
  readonly copiesInUse: string | null
  /** What the engine that the run needs next is to serve: base and adapter merged, where it is an adapter's that is to be compared with them. */
  readonly merged: Observation["merged"]
  readonly mergedAnswers: MergedAnswers
  readonly bootVerdicts: BootVerdicts
  readonly observe: () => Observation
}

/** Since when nothing of a revision that gives its engine back has been seen published; only a memory, so that a restart at worst drains for longer. */
export type Withdrawn = Map<Run["id"], number>

/** Whether the run's engine is to go once its requests have ended, or may be. */
const givesBack = ({ modelDeleted, modelDisabled, phase, replacedBy, revision }: Run) =>
  phase === "activated" &&
  (modelDeleted || modelDisabled || revision?.status === "superseded" || replacedBy !== null || revision?.settings.hold_seconds !== undefined)

/** Since when the containers of runs cannot be started; only a memory, so that a restart at worst waits for longer. */
export type Blocked = Map<Run["id"], number>

export interface GatherFrom {
  readonly cluster: Cluster
  readonly pool: Pool
  readonly background: Background
  readonly withdrawn: Withdrawn
  readonly blocked: Blocked
  readonly futureTimes: FutureTimes
  readonly nodeless: Nodeless
  readonly mergedAnswers: MergedAnswers
  readonly bootVerdicts: BootVerdicts
  readonly attendance: Attendance
  readonly settings: Parameters<typeof fetchJob>[0]["settings"] & Pick<OperatorSettings, "keepFinishedDays" | "weightsClaim">
  /** Pods that were made, by name, with the version that this gave them, until the watch tells of them; undefined: a pass has missed it since. */
  readonly madePods: Map<string, string | undefined>
  /** Whose disruption budgets were made that no watch has told of yet, and when, Unix milliseconds. */
  readonly madeBudgets: Map<Run["id"], number>
  /** Runs that were released lately. */
  readonly released: Set<Run["id"]>
}

/** Since when the nodes of runs' pods are not there; only a memory, so that a restart at worst waits for longer. */
export type Nodeless = Map<Run["id"], { readonly uid: string; readonly since: number }>

/** Phases that an engine's failed start ends, if it names its cause. */
const ofEngine: ReadonlySet<Run["phase"]> = new Set(["booting", "checking", "measuring", "benchmarking", "activating"])

const logTail = 200
/** How long a watch is waited for to tell of what was made, milliseconds. */
const untilTold = 10_000
const dayMillis = 86_400_000

const isOutdated = (madeFrom: string, wanted: KubeObject | null): boolean => wanted !== null && wanted.metadata.annotations?.[madeFromAnnotation] !== madeFrom

/** Whether the Job would be another one by now: the hub's address, say, has changed. One that does not tell what it was made from is none. */
const isOldFetch = (job: WatchedJob | undefined, { revision, ...run }: Run, podClass: PodClass | null, settings: GatherFrom["settings"]): boolean => {
  const madeFrom = job?.metadata.annotations?.[madeFromAnnotation]
  if (madeFrom === undefined || revision === null || podClass === null) return false
  const weightsClaim = podClass.weightsClaim ?? settings.weightsClaim
  return isOutdated(madeFrom, fetchJob({ run: { ...run, revision }, revision, settings, weightsClaim, owner: null }, false))
}

/** Whether a run's decisions depend on free GPUs and on who goes first: where it is on its way to them, or may have lost them. */
const isPlaced = ({ phase, revision }: Run, pod: PodSeen | null): boolean =>
  phase === "materializing" ||
  phase === "waiting" ||
  phase === "queued" ||
  (phase === "screening" && revision !== null) ||
  (phase === "provisioning" && (pod === null || pod.unschedulable !== null))

/** Whether it is the host class of that plan. One that was made anew with other cards is none on which anything of it was estimated or verified. */
const isChosen = ({ gpu_count, gpu_pool, name }: HostClass, plan: Pick<ServingPlan, "estimate" | "settings"> | null): boolean =>
  plan !== null && name === plan.settings.host_class && gpu_pool === plan.estimate.gpu_pool && gpu_count === plan.estimate.gpu_count

/** The host classes on which the run may be placed now: those that its request leaves open, are there, and read weights from the store that has or gets the run's. */
const classOptions = (run: Run, own: PodClass | null, classes: ReadonlyArray<PodClass>, settings: Pick<OperatorSettings, "namespace" | "weightsClaim">) =>
  run.placements.flatMap((plan) => {
    const podClass = classes.find(({ hostClass, nodes, queueName }) => nodes === 1 && queueName === null && isChosen(hostClass, plan))
    if (podClass === undefined) return []
    const sharesStore = own !== null && weightsStore(own, settings) === weightsStore(podClass, settings)
    return sharesStore || weightsSeen(run, podClass, settings) !== null ? [{ plan, podClass }] : []
  })

/** Since when its node does not answer. One that is not there has its time from when that was first seen: it may come back, as a kubelet that registers it anew. */
const downSince = (nodeless: Nodeless, id: Run["id"], { nodeDownSince, uid }: PodSeen, node: Option.Option<Node>, now: number): number | null => {
  const before = nodeless.get(id)
  nodeless.delete(id)
  if (nodeDownSince === null || Option.isSome(node)) return nodeDownSince
  const since = before?.uid === uid ? Math.min(before.since, now) : now
  nodeless.set(id, { uid, since })
  return Math.max(nodeDownSince, since)
}

/** Those of its times that something is counted from. */
const timesOf = ({ copy, createdAt, merge, nodeDownSince, readyChangedAt, scheduledAt, startedAt, unschedulable }: PodSeen) => [
  createdAt,
  scheduledAt,
  startedAt,
  readyChangedAt,
  nodeDownSince,
  unschedulable?.since ?? null,
  copy?.endedAt ?? null,
  merge?.endedAt ?? null
]

/** The last words of a download or a copy that works; none where its node does not tell them at once. */
const readLog = Effect.fnUntraced(function* (pod: string, namespace: string, container?: string) {
  const kube = yield* KubeClient
  return yield* kube.podLog(pod, namespace, { tailLines: 5, ...(container === undefined ? {} : { container }) }).pipe(
    Effect.timeout("2 seconds"),
    Effect.catch(() => Effect.succeed(""))
  )
})

/** What the container that ended last had to say: the log is already that of the next one where it runs again. */
const lastWords = (pod: WatchedPod | undefined): string => {
  const container = pod?.status?.containerStatuses?.[0]
  return (container?.state?.terminated ?? container?.lastState?.terminated)?.message ?? ""
}

/** The custom resource that shows the run; one that somebody applied only while it is the object that the run stands for. */
const resourceOf = Effect.fnUntraced(function* (cluster: Cluster, run: Run) {
  if (run.applied !== null && run.applied.current === null) return null
  const place = resourcePlace(run, cluster.namespace)
  const found = Option.getOrNull(yield* cluster.deployments.get(place.name, place.namespace))
  return run.applied === null || found?.metadata.uid === run.applied.current?.uid ? found : null
})

/** Reads the world once for one run. */
export const gather = Effect.fnUntraced(function* (
  {
    attendance,
    background,
    blocked,
    bootVerdicts,
    cluster,
    futureTimes,
    madeBudgets,
    madePods,
    mergedAnswers,
    nodeless,
    pool,
    released,
    settings,
    withdrawn
  }: GatherFrom,
  run: Run
): Effect.fn.Return<Gathered, never, KubeClient | Runs> {
  const kube = yield* KubeClient
  const { namespace } = cluster
  const now = yield* Clock.currentTimeMillis
  const resource = yield* resourceOf(cluster, run)
  const job = Option.getOrUndefined(yield* cluster.jobs.get(fetchJobName(run.id), namespace))
  const own = yield* cluster.pods.listByLabel(deploymentLabel, run.id)
  const engines = run.engineRun === run.id ? own : yield* cluster.pods.listByLabel(deploymentLabel, run.engineRun)
  const podName = enginePodName(run.engineRun)
  const enginePod = engines.find((pod: WatchedPod) => pod.metadata.name === podName)
  // Made, and not told of yet: what is decided now may be without it, so that it is news when it comes.
  if (enginePod === undefined && madePods.has(podName)) madePods.set(podName, undefined)
  const node = enginePod?.spec?.nodeName === undefined ? Option.none() : yield* cluster.nodes.get(enginePod.spec.nodeName)
  const classes = (yield* cluster.hostClasses.list()).flatMap((object) => Option.toArray(toPodClass(object)))
  const podClass = classes.find(({ hostClass }) => isChosen(hostClass, run.revision)) ?? null
  const found = enginePod === undefined ? null : podSeen(enginePod, Option.getOrUndefined(node))
  const looked = found === null ? null : { ...found, nodeDownSince: downSince(nodeless, run.id, found, node, now) }
  if (looked === null) nodeless.delete(run.id)
  const copyLog =
    looked?.copy?.running === true ? yield* readLog(looked.name, namespace, (enginePod === undefined ? null : firstContainer(enginePod)) ?? undefined) : ""
  const pod = enginePod === undefined || looked === null ? null : { ...looked, copy: copySeen(enginePod, copyLog) }
  const copies = pod === null ? (podClass?.weightsCache?.claimName ?? null) : null
  const places = isPlaced(run, pod)
  const options = places && pod === null ? classOptions(run, podClass, classes, settings) : []
  const reservations = places ? yield* (yield* Runs).reservations : []
  const { with: begunWith, ...work } = yield* background.seen(run.id)

  const fetching = own.filter((candidate: WatchedPod) => candidate.metadata.labels?.[roleLabel] === "fetch")
  const fetched = run.phase === "materializing" ? fetchingPod(fetching) : undefined
  const fetchLog = fetched === undefined ? "" : yield* readLog(fetched.metadata.name, namespace)

  const failedStart = ofEngine.has(run.phase) && pod !== null && !pod.ready && pod.restarts >= bootRestarts
  const bootLog = failedStart
    ? `${lastWords(enginePod)}\n${yield* Effect.catch(kube.podLog(pod.name, namespace, { tailLines: logTail }), () => Effect.succeed(""))}`
    : null

  if (!givesBack(run) || pod === null || run.endpoints.length > 0) withdrawn.delete(run.id)
  else withdrawn.set(run.id, Math.min(withdrawn.get(run.id) ?? now, now))

  if (pod === null || pod.blocked === null) blocked.delete(run.id)
  else blocked.set(run.id, Math.min(blocked.get(run.id) ?? now, now))

  const boot = bootSeen(bootVerdicts, run, podClass, pod)
  const times = lookAtTimes(futureTimes, run.id, now)
  const { at } = times
  at(`phase ${run.history.length}`, run.phaseSince)
  for (const time of [run.endedAt, run.lastUsedAt, boot?.verdict?.at ?? null, ...(pod === null ? [] : timesOf(pod))])
    if (time !== null) at(pod?.uid ?? "", time)

  const merged = mergedSeen(mergedAnswers, run)
  const holder = run.predecessor === null ? Option.none() : yield* cluster.pods.get(enginePodName(run.predecessor.run), namespace)
  const seen = {
    run,
    admission: pod?.gated === true ? yield* admissionOf(pod.uid, namespace) : null,
    predecessorHolds: Option.isSome(holder),
    outdated: pod !== null && !pod.started && pod.madeFrom !== null && isOutdated(pod.madeFrom, wantedPod(run, podClass, settings, { merged })),
    budget:
      Math.abs(now - (madeBudgets.get(run.id) ?? Number.NEGATIVE_INFINITY)) < untilTold ||
      Option.isSome(yield* cluster.budgets.get(objectName(run.id), namespace)),
    resource: resource === null ? null : { uid: resource.metadata.uid ?? "", mirroredPhase: resource.status?.phase ?? null },
    shownSince: Math.max(0, ...(resource?.status?.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime) || 0)),
    keepFinished: settings.keepFinishedDays === 0 ? null : settings.keepFinishedDays * dayMillis,
    podClass,
    engine: run.revision === null ? null : (engineFor(run.revision.settings.runtime) ?? null),
    weights: weightsSeen(run, podClass, settings),
    fetch: fetchSeen(job, fetching, fetchLog, isOldFetch(job, run, podClass, settings), (time) => at("fetch", time)),
    pod,
    merged,
    boot,
    blockedSince: blocked.get(run.id) ?? null,
    bootLog,
    work,
    sameStart: work.running !== null && begunWith === whichStart(pod),
    withdrawnAt: withdrawn.get(run.id) ?? null,
    firstSeen: times.seen,
    attendedSince: attendance.since(now),
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
      ...seen,
      elsewhere:
        podClass !== null &&
        (podClass.autoscaling || pool.ledger.hasNodeBeside(podClass, [enginePod?.spec?.nodeName ?? "", ...run.nodeFaults.map(({ node: failed }) => failed)])),
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
