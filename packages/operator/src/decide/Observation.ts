import type { NamedFailure } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import type { DownloadState } from "@seatrial/hub"
import type { Run, ServingPlan } from "@seatrial/store"
import { Data } from "effect"
import type { PodClass } from "../resources/HostClassResource.ts"

type None = Record<never, never>

/** Why a download's pod does not run, in a sentence of the cluster's own words. */
export interface FetchObstacle {
  readonly says: string
  /** Until then (Unix milliseconds) it is no more than what every start takes; null: never was. */
  readonly usualUntil: number | null
}

/** The Job that brings the weights. */
export type FetchSeen = Data.TaggedEnum<{
  Absent: None
  /**
   * `obstacle`: why its pod does not run. `progress`: how it goes on, once it says so. `outdated`: another Job would be made by now, as where the hub has another address
   * since. `runsSince`: since when its pod runs, Unix milliseconds. `lastFailure`: why the try before ended.
   */
  Active: {
    readonly obstacle: FetchObstacle | null
    readonly progress: DownloadState | null
    readonly outdated?: boolean
    readonly runsSince?: number
    readonly lastFailure?: NamedFailure
  }
  Succeeded: None
  /** `endedAt`: Unix milliseconds; null where the cluster does not say. */
  Failed: { readonly failure: NamedFailure; readonly endedAt: number | null }
  /** Being deleted. */
  Leaving: None
}>
export const FetchSeen = Data.taggedEnum<FetchSeen>()

/** The copy of the weights to the pod's node, which is made before the engine starts, or the look at those in the store. */
export interface CopySeen {
  /** Whether it is but a look at the weights in the store. */
  readonly checks?: boolean
  readonly running: boolean
  /** Whether it is there. */
  readonly done: boolean
  /** When it ended last, Unix milliseconds; null where it has not. */
  readonly endedAt: number | null
  /** How often it has failed, and why it did last. */
  readonly failures: number
  readonly failure: NamedFailure | null
  /** Whether another try would be no better. */
  readonly final: boolean
  /** How it goes on, once it says so. */
  readonly progress: DownloadState | null
}

/** The merge of an adapter into its base, which comes before an engine that serves that. */
export interface MergeSeen {
  readonly running: boolean
  readonly done: boolean
  /** When it ended last, Unix milliseconds; null where it has not. */
  readonly endedAt: number | null
  /** How often it has failed, and why it did last. */
  readonly failures: number
  readonly failure: NamedFailure | null
  /** Whether another try would be no better. */
  readonly final?: boolean
}

/** What is known of the latest start of an engine whose revision was verified. Times are Unix milliseconds. */
export interface BootSeen {
  /** Which start it is. */
  readonly boot: string
  /** Starts in a row that answered otherwise, this one counted. */
  readonly failures: number
  /** `same`: it answers as what was verified; `drifted`: not to the byte, and as likely; `differs`: otherwise. `at`: when that was known. Null: not compared yet. */
  readonly verdict: { readonly outcome: "same" | "drifted" | "differs"; readonly message: string; readonly failures: number; readonly at: number } | null
}

/** The engine's pod. Times are Unix milliseconds. */
export interface PodSeen {
  readonly name: string
  readonly uid: string
  readonly createdAt: number
  /** Of its container. */
  readonly image: string | null
  /** `sha256:...` of the image that it runs; null where the node does not say. */
  readonly imageDigest: string | null
  /** Whether its image is named by its digest, so that no start gets another one. */
  readonly imagePinned: boolean
  /** What it was made from, in a digest; null where it does not say. */
  readonly madeFrom: string | null
  readonly deleting: boolean
  readonly scheduled: boolean
  /** When it got its node; null while it has none. */
  readonly scheduledAt: number | null
  /** Why no node takes it, in the scheduler's words. */
  readonly unschedulable: { readonly since: number; readonly message: string } | null
  /** Whether somebody (Kueue) holds it back from the scheduler. */
  readonly gated: boolean
  /** Null: the engine reads the store itself. */
  readonly copy: CopySeen | null
  /** Null: it serves what the run is about. Else base and adapter merged, for comparison; it never has traffic. */
  readonly merge: MergeSeen | null
  /** Whether its container has run at all. */
  readonly started: boolean
  /** When its container started last, or ended last where it waits to start again. */
  readonly startedAt: number | null
  readonly ready: boolean
  /** Since when it is ready, or is not. */
  readonly readyChangedAt: number | null
  readonly restarts: number
  readonly lastExit: { readonly code: number; readonly reason: string } | null
  /** Why its container cannot be started, for example `ImagePullBackOff`. */
  readonly blocked: string | null
  /** Why it will never run again: its node is gone, it was evicted. No fault of the model. */
  readonly lost: string | null
  /** Whether one of its own cards is known to have failed, or one of its node's. */
  readonly gpuFault: boolean
  /** Since when its node does not answer. */
  readonly nodeDownSince: number | null
  /** `http://address:port` once it has an address. */
  readonly url: string | null
}

export type WorkKind = "screening" | "fidelity" | "checking" | "measuring" | "benchmarking" | "boot"

/** How the latest background work ended where it could not record a result. */
export interface WorkEnded {
  readonly kind: WorkKind
  /** Which start of an engine, or which entry into a phase, its tries are counted for. */
  readonly about: string
  /** Times that it was tried for that. */
  readonly attempts: number
  readonly at: number
  /** `failure`: a final answer. Null: it could not be done now. */
  readonly failure: NamedFailure | null
  readonly message: string
  /** Whether each of the tries ended because the repository's own tokenizer or chat template was too much for the process that it has. */
  readonly byRepository: boolean
  /** Whether the engine answered a valid request with an HTTP 5xx. */
  readonly isEngineError?: boolean
}

/** A host class on which the run may be placed, and what is free there: see `Observation`. */
export interface ClassOption extends Pick<Observation, "ahead" | "asked" | "classGpus" | "freeGpus" | "freeSlots" | "nodeGpus" | "setAside" | "shortage"> {
  readonly plan: ServingPlan
  readonly podClass: PodClass
}

/** What one decision may know: read once, by `gather`, and never again while it is made. */
export interface Observation {
  readonly run: Run
  /** The custom resource, and the phase that its status shows. */
  readonly resource: { readonly uid: string; readonly mirroredPhase: string | null } | null
  /** Since when the custom resource's conditions are as they are, Unix milliseconds; 0 where there is none. */
  readonly shownSince: number
  /** How long the custom resource of an API's run that is over stays, milliseconds; null for ever. */
  readonly keepFinished: number | null
  /** The host class that was chosen for the run; null where none was chosen or it is gone. */
  readonly podClass: PodClass | null
  readonly engine: EngineAdapter | null
  readonly fetch: FetchSeen
  /** What is known of the run's weights in the store that it takes them from, before any engine of it is ready: null: nothing; `own`: since the run was made. */
  readonly weights: { readonly own: boolean } | null
  readonly pod: PodSeen | null
  /** Null: there is nothing that an engine that starts again could be compared with. */
  readonly boot: BootSeen | null
  /** What the adapter of the run is compared with: `wanted`: base and adapter merged have to answer first; `answered`: they have. `none`: it is compared with nothing. */
  readonly merged: "none" | "wanted" | "answered"
  /** Since when its container cannot be started, as far as this operator has seen. */
  readonly blockedSince: number | null
  /** End of the container's log; read only where a start failed. */
  readonly bootLog: string | null
  /** Engines of this host class that would find GPUs now and are not set aside for others, this run's own pod not counted. */
  readonly freeSlots: number
  /** Runs that wait for the same of them and go first. */
  readonly ahead: number
  /** Engines of this host class that were asked for and have no node yet. */
  readonly asked: number
  /** GPUs that engines of this host class hold or were asked for. */
  readonly classGpus: number
  /** Why no node can take engines of the host class, however few are there; null where some can, and where nodes come when they are asked for. */
  readonly shortage: string | null
  /** GPUs of the nodes of the host class, and those of them that no pod has. */
  readonly nodeGpus: number
  readonly freeGpus: number
  /** The host classes that the run's request leaves open, in order of preference; empty if there is one only. */
  readonly options: ReadonlyArray<ClassOption>
  /**
   * Another host class that has room for the run now and on which its model fits; null if there is none, or the run does not queue. `sameStore`: whether its engines read
   * weights from the same store.
   */
  readonly roomOn: { readonly name: string; readonly freeGpus: number; readonly sameStore: boolean } | null
  /** GPUs of the host class are free, but set aside. */
  readonly setAside: boolean
  /** GPUs that the organisation holds or has been let through to, this run's not counted; those of its older runs in `waiting` too. */
  readonly organizationGpus: number
  /** What Kueue says of the pod that it holds back. */
  readonly admission: string | null
  /** Whether the pod of what the model serves, another run's, is there. */
  readonly predecessorHolds: boolean
  /** Why the GPUs of that pod would be none for an engine of the host class; null where they would. */
  readonly predecessorPlace: string | null
  /** Candidates of its model that hold GPUs, while it waits for some. `until`: Unix milliseconds. `inPlace`: whether an engine of the run could have their place. */
  readonly candidates: ReadonlyArray<{
    readonly run: Run["id"]
    readonly pod: string
    readonly gpus: number
    readonly until: number
    readonly inPlace: boolean
  }>
  /** Whether its host class has, or may get, a node that the run's pod is not on and where nothing has gone wrong with the run. */
  readonly elsewhere: boolean
  /** Whether the run's pod has not started, and another would be asked for now: its host class has changed. */
  readonly outdated: boolean
  /** Whether there is a disruption budget for the run's engine. */
  readonly budget: boolean
  readonly work: { readonly running: WorkKind | null; readonly ended: WorkEnded | null }
  /** Whether the work that runs was begun with this very start of the engine. */
  readonly sameStart: boolean
  /** Since when nothing of it is published although its engine is still there; only of a revision that gives its engine back or may idle. */
  readonly withdrawnAt: number | null
  /** When this operator saw those times first that lay in the future then; see `FutureTimes`. */
  readonly firstSeen: ReadonlyMap<number, number>
  /** Since when this operator has been driving the runs without a gap, Unix milliseconds. */
  readonly attendedSince: number
  /** Whether it was said already that the cluster holds nothing of the run any more. */
  readonly released: boolean
}

/** A time of the run or of its pod as things are counted from it: never in the future for long, even where a clock was set back. */
export const countedAs = ({ firstSeen }: Pick<Observation, "firstSeen">, time: number): number => firstSeen.get(time) ?? time

/**
 * From when a deadline counts, Unix milliseconds: the latest of these times, but none before this operator came to look. Nothing may fail for what nobody was there
 * to do or to see.
 */
export const countedFrom = (seen: Observation, ...times: ReadonlyArray<number | null>): number =>
  times.reduce<number>((latest, time) => (time === null ? latest : Math.max(latest, countedAs(seen, time))), seen.attendedSince)

/** What tries of a work are counted for: the engine's latest start, or this time in the phase. */
export const workAbout = ({ boot, run }: Observation, kind: WorkKind): string => (kind === "boot" ? (boot?.boot ?? "") : `${run.phaseSince}`)

/** Which start of which engine it is; another one where its container has ended meanwhile. */
export const whichStart = (pod: PodSeen | null): string => (pod === null ? "" : `${pod.uid} ${pod.restarts} ${pod.startedAt}`)

/**
 * The work of that kind, where it runs and goes on although the engine is not ready now: one that is busy with it answers its probes late, and what is begun anew for each
 * of them never ends. Not where the engine has started again.
 */
export const goesOn = ({ run, sameStart, work }: Observation, kind: WorkKind): WorkKind | null =>
  sameStart && work.running === kind && (run.revision?.engineImage ?? null) !== null ? kind : null

/** How that work ended last, of this start or this time in the phase: an earlier one says nothing of it. */
export const endedOf = (seen: Observation, kind: WorkKind): WorkEnded | null => {
  const { ended } = seen.work
  return ended?.kind === kind && ended.about === workAbout(seen, kind) ? ended : null
}
