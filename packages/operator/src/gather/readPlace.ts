import { type HostClass, isUnplaced } from "@seatrial/domain"
import { type Reservation, type Run, Runs, type ServingPlan } from "@seatrial/store"
import { Effect, Option } from "effect"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { openClasses } from "../resources/classVerdict.ts"
import { type PodClass, toPodClass } from "../resources/PodClass.ts"
import type { Cluster } from "./Cluster.ts"
import { observeWeights, weightsStore } from "./observeWeights.ts"

type StoreSettings = Pick<OperatorSettings, "namespace" | "weightsClaim">

/** The possible places of the run's engine. */
export interface Place {
  /** The host classes on which models can be deployed. */
  readonly classes: ReadonlyArray<PodClass>
  /**
   * The host class of the run, even if no further model can be deployed on it; null if none was chosen or it was
   * deleted.
   */
  readonly podClass: PodClass | null
  /** Whether the run's decisions depend on free GPUs and on the queue. */
  readonly isPlaced: boolean
  readonly options: ReadonlyArray<{ readonly plan: ServingPlan; readonly podClass: PodClass }>
  readonly reservations: ReadonlyArray<Reservation>
}

/**
 * Whether the run's decisions depend on free GPUs and on the queue: it is on its way to GPUs, or may have lost them.
 */
const isPlaced = ({ phase, revision }: Run, pod: ObservedPod | null): boolean =>
  (isUnplaced(phase) && revision !== null) || (phase === "provisioning" && (pod === null || pod.unschedulable !== null))

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
const classOptions = (run: Run, own: PodClass | null, classes: ReadonlyArray<PodClass>, settings: StoreSettings) =>
  run.placements.flatMap((plan) => {
    const podClass = classes.find(({ hostClass, queueName }) => queueName === null && isChosen(hostClass, plan))
    if (podClass === undefined) return []
    const sharesStore = own !== null && weightsStore(own, settings) === weightsStore(podClass, settings)
    return sharesStore || observeWeights(run, podClass, settings) !== null ? [{ plan, podClass }] : []
  })

/** Reads the host classes, and which of them the run may take. */
export const readPlace = Effect.fnUntraced(function* (
  { hostClasses }: Cluster,
  settings: StoreSettings,
  run: Run,
  pod: ObservedPod | null
): Effect.fn.Return<Place, never, Runs> {
  const objects = yield* hostClasses.list()
  const classes = openClasses(objects)
  const podClass = objects.flatMap((object) => Option.toArray(toPodClass(object))).find(({ hostClass }) => isChosen(hostClass, run.revision)) ?? null
  if (!isPlaced(run, pod)) return { classes, podClass, isPlaced: false, options: [], reservations: [] }
  const options = pod === null ? classOptions(run, podClass, classes, settings) : []
  return { classes, podClass, isPlaced: true, options, reservations: yield* (yield* Runs).reservations }
})
