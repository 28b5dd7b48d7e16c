import type { NamedFailure } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import type { DownloadState } from "@seatrial/hub"
import type { Run, ServingPlan } from "@seatrial/store"
import { Data } from "effect"
import type { PodClass } from "../resources/HostClassResource.ts"
import type { FundingProblem } from "./funding.ts"

type None = Record<never, never>

/** Why a download's pod does not run. The sentence quotes the cluster. */
export interface FetchObstacle {
  readonly says: string
  /** Unix milliseconds until which the obstacle is part of a normal start; null if it never is. */
  readonly usualUntil: number | null
}

/** The Job that downloads the weights. */
export type ObservedFetch = Data.TaggedEnum<{
  Absent: None
  /**
   * `obstacle`: why its pod does not run. `progress`: null until the download reports some. `outdated`: the operator
   * would create a different Job now, for example because the address of the hub has changed. `runsSince`: when its pod
   * started, Unix milliseconds. `lastFailure`: why the previous attempt ended.
   */
  Active: {
    readonly obstacle: FetchObstacle | null
    readonly progress: DownloadState | null
    readonly outdated?: boolean
    readonly runsSince?: number
    readonly lastFailure?: NamedFailure
  }
  Succeeded: None
  /** `endedAt`: Unix milliseconds; null if the cluster does not report it. */
  Failed: { readonly failure: NamedFailure; readonly endedAt: number | null }
  /** The Job is being deleted. */
  Leaving: None
}>
export const ObservedFetch = Data.taggedEnum<ObservedFetch>()

/**
 * The copy of the weights to the pod's node, which runs before the engine starts, or the check of the weights in the
 * store.
 */
export interface ObservedCopy {
  /** Whether this is only a check of the weights in the store. */
  readonly checks?: boolean
  readonly running: boolean
  /** Whether the copy is complete. */
  readonly done: boolean
  /** When the last attempt ended, Unix milliseconds; null if none has ended. */
  readonly endedAt: number | null
  /** The number of failed attempts, and the cause of the last one. */
  readonly failures: number
  readonly failure: NamedFailure | null
  /** Whether another attempt cannot help. */
  readonly final: boolean
  /** Null until the copy reports progress. */
  readonly progress: DownloadState | null
}

/** The merge of an adapter into its base, which runs before the engine that serves the merged model. */
export interface ObservedMerge {
  readonly running: boolean
  readonly done: boolean
  /** When the last attempt ended, Unix milliseconds; null if none has ended. */
  readonly endedAt: number | null
  /** The number of failed attempts, and the cause of the last one. */
  readonly failures: number
  readonly failure: NamedFailure | null
  /** Whether another attempt cannot help. */
  readonly final?: boolean
}

/** The latest start of an engine whose revision was verified. Times are Unix milliseconds. */
export interface ObservedBoot {
  /** Identifies the start. */
  readonly boot: string
  /** Consecutive starts with different answers, including this one. */
  readonly failures: number
  /**
   * `same`: the answers match the verified ones. `drifted`: the answers differ, but are as likely. `differs`: the
   * answers differ and are less likely. `at`: when the comparison ended. Null if the start is not compared yet.
   */
  readonly verdict: { readonly outcome: "same" | "drifted" | "differs"; readonly message: string; readonly failures: number; readonly at: number } | null
}

/** The engine's pod. Times are Unix milliseconds. */
export interface ObservedPod {
  readonly name: string
  readonly uid: string
  readonly createdAt: number
  /** The image of its container. */
  readonly image: string | null
  /** Digest (`sha256:...`) of the running image; null if the node does not report it. */
  readonly imageDigest: string | null
  /** Whether the pod refers to its image by digest, so that every start uses the same image. */
  readonly imagePinned: boolean
  /** Digest of the specification that the pod was created from; null if it has none. */
  readonly madeFrom: string | null
  readonly deleting: boolean
  readonly scheduled: boolean
  /** When the pod was bound to its node; null if it is not bound. */
  readonly scheduledAt: number | null
  /** Why the pod is unschedulable, as the scheduler reports it. */
  readonly unschedulable: { readonly since: number; readonly message: string } | null
  /** Whether a scheduling gate (of Kueue) holds the pod back. */
  readonly gated: boolean
  /** Null if the engine reads the store directly. */
  readonly copy: ObservedCopy | null
  /**
   * Null if the engine serves the model of the run. Otherwise it serves base and adapter merged, for comparison, and
   * never has traffic.
   */
  readonly merge: ObservedMerge | null
  /** Whether its container has ever run. */
  readonly started: boolean
  /** When its container started last, or ended last if it waits for a restart. */
  readonly startedAt: number | null
  readonly ready: boolean
  /** When its readiness changed last. */
  readonly readyChangedAt: number | null
  readonly restarts: number
  readonly lastExit: { readonly code: number; readonly reason: string } | null
  /** Why its container cannot start, for example `ImagePullBackOff`. */
  readonly blocked: string | null
  /**
   * Why the pod will never run again, for example because it was evicted or its node is gone. The model is not at
   * fault.
   */
  readonly lost: string | null
  /** Whether one of its GPUs, or one of its node's, is known to have failed. */
  readonly gpuFault: boolean
  /** When its node stopped responding. */
  readonly nodeDownSince: number | null
  /** `http://address:port`; null until the pod has an address. */
  readonly url: string | null
}

export type WorkKind = "screening" | "fidelity" | "checking" | "measuring" | "benchmarking" | "boot"

/** How the latest background work ended, if it could not record a result. */
export interface WorkEnded {
  readonly kind: WorkKind
  /** The start of the engine, or the entry into the phase, for which attempts are counted. */
  readonly about: string
  /** Number of attempts. */
  readonly attempts: number
  readonly at: number
  /** A final result. Null if the work could not be done now. */
  readonly failure: NamedFailure | null
  readonly message: string
  /**
   * Whether every attempt ended because the repository's tokenizer or chat template exceeded the memory of its process.
   */
  readonly byRepository: boolean
  /** Whether the engine answered a valid request with an HTTP 5xx. */
  readonly isEngineError?: boolean
}

/** A host class that can take the run, and its free capacity. See `Observation` for the fields. */
export interface ClassOption
  extends Pick<Observation, "ahead" | "requestedEngines" | "classGpus" | "freeGpus" | "freeSlots" | "nodeGpus" | "setAside" | "shortage"> {
  readonly plan: ServingPlan
  readonly podClass: PodClass
}

/** Everything that a decision may depend on. `gather` reads it once; a decision reads nothing else. */
export interface Observation {
  readonly run: Run
  /** The custom resource, and the phase in its status. */
  readonly resource: { readonly uid: string; readonly shownPhase: string | null } | null
  /** When the conditions of the custom resource changed last, Unix milliseconds; 0 if it has none. */
  readonly shownSince: number
  /** How long the operator keeps the custom resource of a finished API run, milliseconds; null to keep it forever. */
  readonly keepFinished: number | null
  /** The host class of the run; null if none was chosen or it was deleted. */
  readonly podClass: PodClass | null
  readonly engine: EngineAdapter | null
  readonly fetch: ObservedFetch
  /**
   * The run's weights in its store, before an engine is ready. Null if nothing is recorded. `own`: they were verified
   * after the run was created.
   */
  readonly weights: { readonly own: boolean } | null
  readonly pod: ObservedPod | null
  /** Null if there is nothing to compare a restarted engine with. */
  readonly boot: ObservedBoot | null
  /**
   * The comparison of the run's adapter. `wanted`: the merged model must answer first. `answered`: it has answered.
   * `none`: the adapter is not compared.
   */
  readonly merged: "none" | "wanted" | "answered"
  /** When this operator first observed that the container cannot start. */
  readonly blockedSince: number | null
  /** The end of the container's log; read only if a start failed. */
  readonly bootLog: string | null
  /**
   * Engines of this host class for which GPUs are free and not reserved for other organizations. The run's own pod does
   * not count.
   */
  readonly freeSlots: number
  /** Runs that wait for the same GPUs and go first. */
  readonly ahead: number
  /** Requested engines of this host class that have no node yet. */
  readonly requestedEngines: number
  /** GPUs that engines of this host class hold or requested. */
  readonly classGpus: number
  /**
   * Why no node can take an engine of the host class, even if the node is empty; null if a node can, or if nodes are
   * added on demand.
   */
  readonly shortage: string | null
  /** GPUs of the host class's nodes, and the free GPUs among them. */
  readonly nodeGpus: number
  readonly freeGpus: number
  /** The host classes that the run's request allows, in order of preference; empty if it allows only one. */
  readonly options: ReadonlyArray<ClassOption>
  /**
   * Another host class on which the model fits and that has room now; null if there is none or the run is not queued.
   * `sameStore`: whether its engines read weights from the same store.
   */
  readonly roomOn: { readonly name: string; readonly freeGpus: number; readonly sameStore: boolean } | null
  /** Whether the host class has free GPUs that are reserved for other organizations. */
  readonly setAside: boolean
  /**
   * Why the run's organization gets no GPUs; null if it gets some. `releaseAt`: when its engines release theirs, Unix
   * milliseconds; null if they keep them.
   */
  readonly funding: { readonly why: FundingProblem; readonly releaseAt: number | null } | null
  /** GPUs that the organization holds or was granted, without this run's. Older runs in `waiting` count too. */
  readonly organizationGpus: number
  /** Why Kueue holds the pod back, as Kueue reports it. */
  readonly admission: string | null
  /** Whether the pod of the serving revision, which belongs to another run, exists. */
  readonly predecessorHolds: boolean
  /** Why an engine of the host class could not use the GPUs of that pod; null if it could. */
  readonly predecessorPlace: string | null
  /**
   * Candidates of the same model that hold GPUs while the run waits for some. `until`: Unix milliseconds. `inPlace`:
   * whether an engine of the run could take their place.
   */
  readonly candidates: ReadonlyArray<{
    readonly run: Run["id"]
    readonly pod: string
    readonly gpus: number
    readonly until: number
    readonly inPlace: boolean
  }>
  /** Whether the host class has, or may get, another node on which the run has not failed. */
  readonly elsewhere: boolean
  /** Whether the run's pod has not started and was created from an older version of its host class. */
  readonly outdated: boolean
  /** Whether the run's engine has a disruption budget. */
  readonly budget: boolean
  readonly work: { readonly running: WorkKind | null; readonly ended: WorkEnded | null }
  /** Whether the running work began with the current start of the engine. */
  readonly sameStart: boolean
  /**
   * When the last endpoint of the revision was withdrawn while its engine still runs. Set only if the revision gives
   * its engine back or may idle.
   */
  readonly withdrawnAt: number | null
  /** Times that lay in the future when this operator first read them, and when it did; see `FutureTimes`. */
  readonly firstReadings: ReadonlyMap<number, number>
  /** Since when this operator drives the runs without a gap, Unix milliseconds. */
  readonly leadingSince: number
  /** Whether the release of the run's objects was already recorded. */
  readonly released: boolean
}

/**
 * The time from which to count for a time of the run or its pod. It stays close to the present even if a clock was set
 * back.
 */
export const countedAs = ({ firstReadings }: Pick<Observation, "firstReadings">, time: number): number => firstReadings.get(time) ?? time

/**
 * The start of a deadline, Unix milliseconds: the latest of these times, but not before this operator took over.
 * Nothing fails because no operator was there to act.
 */
export const countedFrom = (observation: Observation, ...times: ReadonlyArray<number | null>): number =>
  times.reduce<number>((latest, time) => (time === null ? latest : Math.max(latest, countedAs(observation, time))), observation.leadingSince)

/** What the attempts of a work are counted for: the engine's latest start, or the current stay in the phase. */
export const workAbout = ({ boot, run }: Observation, kind: WorkKind): string => (kind === "boot" ? (boot?.boot ?? "") : `${run.phaseSince}`)

/** Identifies one start of an engine. The value changes when its container restarts. */
export const whichStart = (pod: ObservedPod | null): string => (pod === null ? "" : `${pod.uid} ${pod.restarts} ${pod.startedAt}`)

/**
 * The running work of that kind, if it continues although the engine is not ready. A busy engine answers its probes
 * late, and work that restarts at each late probe never ends. Null if the engine has restarted.
 */
export const goesOn = ({ run, sameStart, work }: Observation, kind: WorkKind): WorkKind | null =>
  sameStart && work.running === kind && (run.revision?.engineImage ?? null) !== null ? kind : null

/**
 * The result of the last work of that kind for the current start or stay in the phase. Earlier results do not count.
 */
export const endedOf = (observation: Observation, kind: WorkKind): WorkEnded | null => {
  const { ended } = observation.work
  return ended?.kind === kind && ended.about === workAbout(observation, kind) ? ended : null
}
