import type { HostClass } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import type { KubeClient, Node } from "@seatrial/kube"
import { type Run, Runs } from "@seatrial/store"
import { Clock, Effect, Option } from "effect"
import type { HttpClient } from "effect/http"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { resourcePlace } from "../objects/customResource.ts"
import { isBudgetIntact, leastReady } from "../objects/disruptionBudget.ts"
import type { fetchJob } from "../objects/fetchObjects.ts"
import { wantedPod } from "../objects/wantedPod.ts"
import type { Observation } from "../observation/Observation.ts"
import { type ObservedPod, whichStart } from "../observation/ObservedPod.ts"
import { deploymentLabel, engineOrdinal, enginePodName, objectName } from "../resources/objectNames.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { admissionOf } from "./admission.ts"
import { type BootVerdicts, observeBoot, type TextTurns } from "./BootVerdicts.ts"
import type { Cluster } from "./Cluster.ts"
import { hasCountedRoom } from "./capacity/countedRoom.ts"
import { copiesInUse } from "./copiesInUse.ts"
import type { GatherMemory } from "./GatherMemory.ts"
import { type HeldReports, observeHeld } from "./HeldReports.ts"
import { keepSince } from "./keepSince.ts"
import type { LeaderUptime } from "./LeaderUptime.ts"
import { type MergedAnswers, observeMerged } from "./MergedAnswers.ts"
import { observeFunding, type UsedUpSince } from "./observeFunding.ts"
import { observeMove } from "./observeMove.ts"
import { observePlace } from "./observePlace.ts"
import { observeReference } from "./observeReference.ts"
import { observeRetiring } from "./observeRetiring.ts"
import { observeTimes } from "./observeTimes.ts"
import { observeWeights } from "./observeWeights.ts"
import { isOutdated, observeDownload, readDownload } from "./readDownload.ts"
import { type Engine, readEngine } from "./readEngine.ts"
import { type ReadEngine, readEngines } from "./readEngines.ts"
import { readBootLog } from "./readLog.ts"
import { type Place, readPlace } from "./readPlace.ts"

/**
 * The result of reading everything that a pass needs. `observe` adds the pool's state at the moment of the decision.
 */
export interface Gathered {
  readonly run: Run
  readonly resource: WatchedDeployment | null
  readonly podClass: PodClass | null
  readonly hostClasses: ReadonlyArray<HostClass>
  /** All pods of the run. */
  readonly pods: ReadonlyArray<WatchedPod>
  /** The engine pods of the revision that serves, if that is not the run's. */
  readonly earlierEngines: number
  /** The engine's node; undefined if the engine has none or the node is unknown. */
  readonly node: Node | undefined
  /** The nodes of the engines above the first, by ordinal. */
  readonly otherNodes: ReadonlyMap<number, Node>
  /** How many engines must be ready for the others to be evicted. */
  readonly leastReady: number
  /**
   * The copies of weights that the nodes of the host class must keep, as `seatrial copy-weights` reads them; null if no
   * pod needs the list.
   */
  readonly copiesInUse: string | null
  /** Whether the next engine must serve base and adapter merged, for the comparison of an adapter. */
  readonly merged: Observation["merged"]
  readonly mergedAnswers: MergedAnswers
  readonly heldReports: HeldReports
  readonly bootVerdicts: BootVerdicts
  readonly textTurns: TextTurns
  readonly observe: () => Observation
}

export type GatherSettings = Parameters<typeof fetchJob>[0]["settings"] & Pick<OperatorSettings, "keepFinishedDays" | "unpaidGraceSeconds" | "weightsClaim">

export interface GatherFrom {
  readonly cluster: Cluster
  readonly memory: GatherMemory
  readonly usedUpSince: UsedUpSince
  readonly uptime: LeaderUptime
  readonly settings: GatherSettings
}

/** How long to wait for a watch to show a created object, milliseconds. */
const watchTimeoutMillis = 10_000
const dayMillis = 86_400_000

/** The custom resource that shows the run. An applied object counts only while the run is bound to it. */
const resourceOf = Effect.fnUntraced(function* (cluster: Cluster, run: Run) {
  if (run.applied !== null && run.applied.current === null) return null
  const place = resourcePlace(run, cluster.namespace)
  const observed = Option.getOrNull(yield* cluster.deployments.get(place.name, place.namespace))
  return run.applied === null || observed?.metadata.uid === run.applied.current?.uid ? observed : null
})

const observeResource = (resource: WatchedDeployment | null): Pick<Observation, "resource" | "shownSince"> => {
  if (resource === null) return { resource: null, shownSince: 0 }
  const changes = (resource.status?.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime) || 0)
  return { resource: { uid: resource.metadata.uid ?? "", shownPhase: resource.status?.phase ?? null }, shownSince: Math.max(0, ...changes) }
}

/** The disruption budget of the run's engines. A new or corrected budget counts before a watch shows it. */
const readBudget = Effect.fnUntraced(function* (
  { cluster, memory }: GatherFrom,
  { id }: Run,
  leastReady: number,
  now: number
): Effect.fn.Return<Observation["budget"]> {
  const createdAt = memory.budgetExpectations.get(id) ?? Number.NEGATIVE_INFINITY
  if (Math.abs(now - createdAt) < watchTimeoutMillis) return "intact"
  const budget = Option.getOrNull(yield* cluster.budgets.get(objectName(id), cluster.namespace))
  if (budget === null) return "absent"
  return isBudgetIntact({ id, leastReady }, budget) ? "intact" : "edited"
})

/** The names of the engine pods of the serving revision that the run would replace. */
const readPredecessor = Effect.fnUntraced(function* ({ pods }: Cluster, { predecessor }: Run) {
  if (predecessor === null) return []
  const names = (yield* pods.listByLabel(deploymentLabel, predecessor.run)).map(({ metadata }) => metadata.name)
  return names.filter((name) => engineOrdinal(predecessor.run, name) !== null)
})

/** Whether the run's engine is, or may soon be, deleted once its requests have ended. */
const givesBack = ({ modelDeleted, modelDisabled, phase, replacedBy, revision }: Run, funding: Observation["funding"]) =>
  phase === "activated" &&
  (modelDeleted ||
    modelDisabled ||
    revision?.status === "superseded" ||
    replacedBy !== null ||
    revision?.settings.hold_seconds !== undefined ||
    funding !== null)

/** Since when the engines have no endpoint, and since when the container of the first one does not start. */
const observeSince = (
  { blockedSince, withdrawnSince }: GatherMemory,
  run: Run,
  pods: ReadonlyArray<ObservedPod | null>,
  funding: Observation["funding"],
  now: number
) => ({
  withdrawnAt: keepSince(withdrawnSince, run.id, pods.some((pod) => pod !== null) && run.endpoints.length === 0 && givesBack(run, funding), now),
  blockedSince: keepSince(blockedSince, run.id, (pods[0]?.blocked ?? null) !== null, now)
})

/** Whether the engine's pod has not started and would be created from another specification now. */
const isPodOutdated = (run: Run, pod: ObservedPod | null, podClass: PodClass | null, settings: GatherSettings, merged: Observation["merged"]): boolean =>
  pod !== null && !pod.started && pod.madeFrom !== null && isOutdated(pod.madeFrom, wantedPod(run, podClass, settings, { merged }))

/** See `Gathered.copiesInUse`. Only a run that lacks a pod creates one. */
const readCopies = Effect.fnUntraced(function* (cluster: Cluster, pods: ReadonlyArray<ObservedPod | null>, { podClass }: Place, now: number) {
  const claim = podClass?.weightsCache?.claimName ?? null
  return !pods.includes(null) || claim === null ? null : copiesInUse(yield* cluster.pods.list(), claim, now)
})

const nodesOf = (engines: ReadonlyArray<ReadEngine>): ReadonlyMap<number, Node> =>
  new Map(engines.flatMap(({ node, observed: { ordinal } }) => (node === undefined ? [] : [[ordinal, node]])))

/** See `Observation.hasUncountedPods`. */
const observeUncounted = Effect.fnUntraced(function* (cluster: Cluster, podClass: PodClass | null, { pod, watched }: Engine) {
  if (cluster.countsAllPods || podClass === null || watched === undefined || (pod?.unschedulable ?? null) === null) return false
  return hasCountedRoom(watched, podClass, yield* cluster.nodes.list(), yield* cluster.pods.list())
})

/** Reads the state of the world once for one run. */
export const gather = Effect.fnUntraced(function* (from: GatherFrom, run: Run): Effect.fn.Return<Gathered, never, KubeClient | Runs | HttpClient.HttpClient> {
  const { cluster, memory, settings, uptime, usedUpSince } = from
  const { bootVerdicts, heldReports, mergedAnswers, pool, textTurns } = memory
  const { namespace } = cluster
  const now = yield* Clock.currentTimeMillis
  const resource = yield* resourceOf(cluster, run)
  const engine = yield* readEngine(from, run, now)
  const { pod } = engine
  const place = yield* readPlace(cluster, settings, run, pod)
  const { podClass } = place
  const { with: begunWith, ...work } = yield* memory.background.state(run.id)
  const download = yield* readDownload(cluster, run, engine.own)
  const bootLog = yield* readBootLog(run, pod, engine.watched, namespace)
  const graceMillis = settings.unpaidGraceSeconds * 1_000
  const funding = yield* observeFunding(usedUpSince, run, { isPlaced: place.isPlaced, hasPod: pod !== null, graceMillis, now })
  const boot = observeBoot(bootVerdicts, run, podClass, pod)
  const otherEngines = yield* readEngines(from, { run, podClass, pods: engine.pods, now })
  const pods = [pod, ...otherEngines.map(({ observed }) => observed.pod)]
  const times = observeTimes(memory.futureTimes, run, [{ pod, boot }, ...otherEngines.map(({ observed }) => observed)], now)
  const merged = observeMerged(mergedAnswers, run)
  const ready = leastReady(run, pods)
  const predecessorPods = yield* readPredecessor(cluster, run)
  const predecessorPod = predecessorPods.find((name) => run.predecessor !== null && name === enginePodName(run.predecessor.run)) ?? null
  const reservations = otherEngines.length > 0 || (run.newer ?? null) !== null ? yield* (yield* Runs).reservations : place.reservations
  const observation = {
    run,
    ...observeResource(resource),
    ...observeSince(memory, run, pods, funding, now),
    ...(yield* observeRetiring(from, run, { pod, boot }, now)),
    admission: pod?.gated === true ? yield* admissionOf(pod.uid, namespace) : null,
    funding,
    predecessorHolds: predecessorPod !== null,
    outdated: isPodOutdated(run, pod, podClass, settings, merged),
    budget: yield* readBudget(from, run, ready, now),
    keepFinished: settings.keepFinishedDays === 0 ? null : settings.keepFinishedDays * dayMillis,
    hasUncountedPods: yield* observeUncounted(cluster, podClass, engine),
    podClass,
    engine: run.revision === null ? null : (engineFor(run.revision.settings.runtime) ?? null),
    weights: observeWeights(run, podClass, settings),
    fetch: observeDownload(download, run, podClass, settings, (time) => times.at("fetch", time)),
    reference: yield* observeReference(from, run, podClass),
    heldSince: observeHeld(heldReports, run, pod, now),
    pod,
    merged,
    boot,
    bootLog,
    refusal: memory.refusals.get(run.id) ?? null,
    work,
    sameStart: work.running !== null && begunWith === whichStart(pod),
    firstReadings: times.firstReadings,
    leadingSince: uptime.since(now),
    released: memory.released.has(run.id),
    load: memory.loads.of(run, now),
    move: yield* observeMove(memory, run, pods, now)
  }
  return {
    run,
    resource,
    podClass,
    hostClasses: place.classes.map(({ hostClass }) => hostClass),
    pods: engine.pods,
    earlierEngines: predecessorPods.length,
    node: engine.node,
    otherNodes: nodesOf(otherEngines),
    leastReady: ready,
    copiesInUse: yield* readCopies(cluster, pods, place, now),
    merged,
    mergedAnswers,
    heldReports,
    bootVerdicts,
    textTurns,
    observe: () => ({
      ...observation,
      reference: memory.references.turned(run.id, observation.reference),
      ...observePlace(pool, { ...place, reservations, run, pod, otherEngines, nodeName: engine.watched?.spec?.nodeName ?? "", predecessorPod, funding, now })
    })
  }
})
