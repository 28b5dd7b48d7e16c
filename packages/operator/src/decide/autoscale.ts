import { type EngineCapacity, engineCapacity } from "@seatrial/domain"
import { isServed } from "../observation/isServed.ts"
import type { Observation } from "../observation/Observation.ts"
import type { ObservedLoad } from "../observation/ObservedLoad.ts"
import { Action } from "./Decision.ts"
import { type DesiredReplicas, desiredReplicas, type EngineCurve, upperLimit } from "./desiredReplicas.ts"

/** Without a sample for this long, nothing is decided about the number of engines. */
const staleMillis = 15_000

/** How many engines the autoscaler wants, and what one engine can process. */
interface ScalingStep extends DesiredReplicas {
  readonly capacity: EngineCapacity
}

/** The start time of an engine as its trial measured it; null if unknown. */
const startMillis = ({ measured }: NonNullable<Observation["run"]["revision"]>): number | null => {
  const { boot_seconds, load_seconds } = measured ?? {}
  return typeof load_seconds === "number" ? (load_seconds + (boot_seconds ?? 0)) * 1_000 : null
}

/** What one engine of the run can process; null if that was not measured. */
export const curveOf = ({ revision }: Observation["run"]): (EngineCurve & { readonly measured: EngineCapacity }) | null => {
  const measured = revision === null ? null : engineCapacity(revision)
  return revision === null || measured === null ? null : { capacity: measured.requests, startMillis: startMillis(revision), measured }
}

/** The number of engines by the load; null if the autoscaler does not set it, or lacks what it needs to know. */
const scalingStep = (run: Observation["run"], load: ObservedLoad | null, now: number): ScalingStep | null => {
  const { replicas, scaling = null } = run
  const curve = curveOf(run)
  if (scaling === null || replicas === undefined || load === null || curve === null || run.engineRun !== run.id || !isServed({ run })) return null
  const last = load.samples.at(-1)
  if (last === undefined || now - last.at > staleMillis) return null
  return { ...desiredReplicas({ ...load, replicas }, curve, scaling, now), capacity: curve.measured }
}

/** Whether the load requires another number of engines. */
export const needsScaling = (run: Observation["run"], load: ObservedLoad, now: number): boolean => {
  const step = scalingStep(run, load, now)
  return step !== null && step.replicas !== run.replicas
}

/**
 * Whether the load of the last minutes needed more engines than the autoscaler may set. It stays so for a window, so that
 * the condition does not change with each request.
 */
export const isAtMaximum = (run: Observation["run"], load: ObservedLoad | null, now: number): boolean => {
  const { replicas = 1, scaling = null } = run
  const curve = curveOf(run)
  const step = scalingStep(run, load, now)
  return scaling !== null && curve !== null && step !== null && replicas >= scaling.maxReplicas && step.peak > replicas * upperLimit(curve, scaling)
}

/** Changes the number of engines if the load requires that. */
export const autoscale = ({ load, run }: Observation, now: number): ReadonlyArray<Action> => {
  const step = scalingStep(run, load, now)
  return step === null || step.replicas === run.replicas ? [] : [Action.SetReplicas({ ...step, from: run.replicas ?? 1 })]
}
