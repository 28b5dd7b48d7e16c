import type { Run } from "@seatrial/store"
import { heldUntil } from "../observation/heldUntil.ts"
import { isServed } from "../observation/isServed.ts"
import type { Observation } from "../observation/Observation.ts"
import { noGrowth } from "../observation/ObservedEngine.ts"
import { enginePodName } from "../resources/objectNames.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { GpuLedger } from "./capacity/GpuLedger.ts"
import { noView, type Pool, type PoolView } from "./capacity/Pool.ts"
import type { ReadEngine } from "./readEngines.ts"
import type { Place } from "./readPlace.ts"

type ObservedPlace = PoolView & Pick<Observation, "candidates" | "elsewhere" | "engines" | "growth" | "predecessorPlace">

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
  readonly pod: Observation["pod"]
  readonly funding: Observation["funding"]
  /** The engines above the first. */
  readonly otherEngines: ReadonlyArray<ReadEngine>
  /** The node of the engine; empty if it has none. */
  readonly nodeName: string
  /** The name of the pod of the serving revision that the run would replace; null if there is none. */
  readonly predecessorPod: string | null
  readonly now: number
}

/**
 * Whether engines above the first may be created, or must be given back. Not computed for a run that has one engine.
 */
const observeGrowth = (pool: Pool, question: PlaceQuestion): Observation["growth"] => {
  const { otherEngines, pod, run } = question
  const placed = otherEngines.filter(({ observed }) => observed.pod !== null).length
  if (run.engineRun !== run.id) return noGrowth
  // The engines of a newer revision serve, so that the first one may leave too.
  if ((run.newer ?? null) !== null) return pool.growth({ ...question, hasFirst: pod !== null, placed: placed + (pod === null ? 0 : 1) })
  if (otherEngines.length === 0 || !isServed({ run })) return noGrowth
  return pool.growth({ ...question, hasFirst: pod !== null, placed })
}

/** The part of an observation that depends on the pool at the moment of the decision. */
export const observePlace = (pool: Pool, question: PlaceQuestion): ObservedPlace => {
  const { isPlaced, nodeName, now, otherEngines, podClass, predecessorPod, run } = question
  const { ledger } = pool
  return {
    elsewhere: podClass !== null && hasOtherNode(ledger, podClass, run, nodeName),
    engines: otherEngines.map(({ node, observed }) => ({
      ...observed,
      elsewhere: podClass !== null && hasOtherNode(ledger, podClass, run, node?.metadata.name ?? "")
    })),
    growth: observeGrowth(pool, question),
    candidates: candidatesOf(ledger, podClass, run, now),
    predecessorPlace: podClass === null || predecessorPod === null ? null : ledger.noPlaceOf(podClass, predecessorPod),
    ...(isPlaced ? pool.view(question) : noView)
  }
}
