import type { EngineAdapter } from "@seatrial/engines"
import type { Run, ServingPlan } from "@seatrial/store"
import type { PodClass } from "../resources/PodClass.ts"
import type { Growth, ObservedEngine } from "./ObservedEngine.ts"
import type { ObservedFetch } from "./ObservedFetch.ts"
import type { ObservedLoad } from "./ObservedLoad.ts"
import type { ObservedMove } from "./ObservedMove.ts"
import type { ObservedBoot, ObservedPod } from "./ObservedPod.ts"
import type { ObservedReference } from "./ObservedReference.ts"
import type { Refusal } from "./Refusal.ts"
import type { WorkState } from "./work.ts"

/** Why an organization gets no GPUs: its balance or a spend limit is used up, or its billing is suspended. */
export type FundingProblem = "balance" | "day" | "month" | "suspended"

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
  readonly reference: ObservedReference
  /**
   * When the checks of the engine were done, Unix milliseconds, if their report waits for a comparison with the
   * reference; otherwise null.
   */
  readonly heldSince: number | null
  /**
   * The run's weights in its store, before an engine is ready. Null if nothing is recorded. `own`: they were verified
   * after the run was created.
   */
  readonly weights: { readonly own: boolean } | null
  /** The pod of the first engine. All facts about an engine are about the first one, except for those in `engines`. */
  readonly pod: ObservedPod | null
  /** The engines above the first that exist or are wanted, in the order of their ordinals. */
  readonly engines: ReadonlyArray<ObservedEngine>
  readonly growth: Growth
  /** The load of the model; null if the autoscaler does not set its number of engines, or if no gateway reports it. */
  readonly load: ObservedLoad | null
  /** Null or absent if the model does not move to the run's revision, or cannot return. */
  readonly move?: ObservedMove | null
  /** Null if there is nothing to compare a restarted engine with. */
  readonly boot: ObservedBoot | null
  /**
   * The comparison of the run's adapter. `wanted`: the merged model must answer first. `answered`: it has answered.
   * `none`: the adapter is not compared.
   */
  readonly merged: "none" | "wanted" | "answered"
  /** When this operator first observed that the container cannot start. */
  readonly blockedSince: number | null
  /** The object that the API server refused in the previous pass; null if it refused none. */
  readonly refusal: Refusal | null
  /** The end of the container's log; read only if a start failed. */
  readonly bootLog: string | null
  /**
   * Engines of this host class for which GPUs are free and not reserved for other organizations. The run's own pod does
   * not count.
   */
  readonly freeSlots: number
  /**
   * Whether a node has room for the unschedulable pod by everything that pods of the operator's namespace request. Then
   * pods of other namespaces hold what it lacks. False if their GPUs are counted.
   */
  readonly hasUncountedPods: boolean
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
  /** The disruption budget of the run's engine. `edited`: its specification is not the right one. */
  readonly budget: "absent" | "intact" | "edited"
  readonly work: WorkState
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
