import type { Run } from "@seatrial/store"
import { heldUntil } from "../observation/heldUntil.ts"
import type { Observation } from "../observation/Observation.ts"
import { enginePodName } from "../resources/objectNames.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { GpuLedger } from "./capacity/GpuLedger.ts"
import { noView, type Pool, type PoolView } from "./capacity/Pool.ts"
import type { Place } from "./readPlace.ts"

type ObservedPlace = PoolView & Pick<Observation, "candidates" | "elsewhere" | "predecessorPlace">

/** Whether another node than the engine's, on which the run has not failed, may take the engine. */
const hasOtherNode = (ledger: GpuLedger, podClass: PodClass, { nodeFaults }: Run, nodeName: string): boolean =>
  podClass.autoscaling || ledger.hasOtherNode(podClass, [nodeName, ...nodeFaults.map(({ node }) => node)])

/** The candidates of the run's model that hold GPUs. */
const candidatesOf = (ledger: GpuLedger, podClass: PodClass | null, run: Run, now: number): Observation["candidates"] =>
  run.candidates.flatMap(({ endedAt, gpus, holdSeconds, run: candidate }) => {
    const [pod, until] = [enginePodName(candidate), heldUntil(endedAt, holdSeconds)]
    if (now >= until || !ledger.hasPod(pod)) return []
    return [{ run: candidate, pod, gpus, until, inPlace: podClass !== null && ledger.noPlaceOf(podClass, pod) === null }]
  })

interface PlaceQuestion extends Place {
  readonly run: Run
  /** The node of the engine; empty if it has none. */
  readonly nodeName: string
  /** The name of the pod of the serving revision that the run would replace; null if there is none. */
  readonly predecessorPod: string | null
  readonly now: number
}

/** The part of an observation that depends on the pool at the moment of the decision. */
export const observePlace = (pool: Pool, question: PlaceQuestion): ObservedPlace => {
  const { isPlaced, nodeName, now, podClass, predecessorPod, run } = question
  const { ledger } = pool
  return {
    elsewhere: podClass !== null && hasOtherNode(ledger, podClass, run, nodeName),
    candidates: candidatesOf(ledger, podClass, run, now),
    predecessorPlace: podClass === null || predecessorPod === null ? null : ledger.noPlaceOf(podClass, predecessorPod),
    ...(isPlaced ? pool.view(question) : noView)
  }
}
