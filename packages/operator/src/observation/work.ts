import type { NamedFailure } from "@seatrial/domain"
import type { Observation } from "./Observation.ts"

export const workKinds = ["screening", "preparation", "fidelity", "checking", "comparing", "measuring", "benchmarking", "boot"] as const
export type WorkKind = (typeof workKinds)[number]

/** Work with the run's engine. All other work needs none. */
export type EngineWork = Exclude<WorkKind, "screening" | "preparation">
export const needsEngine = (kind: WorkKind): kind is EngineWork => kind !== "screening" && kind !== "preparation"

/** How the latest background work ended, if it could not record a result. */
export interface WorkEnded {
  readonly kind: WorkKind
  /** The start of the engine, or the entry into the phase, for which attempts are counted. */
  readonly about: string
  /** Number of attempts. */
  readonly attempts: number
  readonly at: number
  /** When the first of these attempts ended. Absent if it is not known, as in records of earlier versions. */
  readonly since?: number
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

/** The running work of a run, and how its last work without a recorded result ended. */
export interface WorkState {
  readonly running: WorkKind | null
  readonly ended: WorkEnded | null
}

/** One background work of a run. `ordinal`: the engine that it uses; 0 if it uses none. */
export interface Work {
  readonly kind: WorkKind
  readonly ordinal: number
}

/** `with`: the start of the engine with which the running work began; see `whichStart`. */
export interface StartedWork extends WorkState {
  readonly with: string
}

/** What the attempts of a work are counted for: the engine's latest start, or the current stay in the phase. */
export const workAbout = ({ boot, run }: Observation, kind: WorkKind): string => (kind === "boot" ? (boot?.boot ?? "") : `${run.phaseSince}`)

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
