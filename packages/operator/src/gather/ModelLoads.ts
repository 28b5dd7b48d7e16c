import type { DeploymentId } from "@seatrial/domain"
import type { ReportedLoad, Run } from "@seatrial/store"
import { Effect } from "effect"
import { addSample, type ObservedLoad } from "../observation/ObservedLoad.ts"
import type { RunStore } from "../RunStore.ts"

/** Without a report for longer than this, the load was not observed without a gap, milliseconds. */
const gapMillis = 30_000

interface KnownLoad extends ObservedLoad {
  readonly replicas: number
  /** The run as its last pass read it; null before its first pass. */
  readonly run: Run | null
  /** Whether it needed more engines than the autoscaler may set, as that pass showed. */
  readonly isLimited: boolean
}

/** Judgments of the load of a run. */
interface LoadRules {
  /** Whether a pass would change the number of engines. */
  readonly needsScaling: (run: Run, load: ObservedLoad, now: number) => boolean
  /** Whether the load needs more engines than the autoscaler may set. */
  readonly isAtMaximum: (run: Run, load: ObservedLoad, now: number) => boolean
}

/** The loads of models whose number of engines the autoscaler sets, by the run that owns the engines. */
export interface ModelLoads extends RunStore {
  /**
   * Adds what gateways report. Returns the runs whose number of engines must change or whose load reaches or leaves the
   * autoscaler's maximum, and those that had no pass yet.
   */
  readonly add: (loads: ReadonlyArray<ReportedLoad>, now: number) => ReadonlyArray<DeploymentId>
  /**
   * The load of the run's model; null if the autoscaler does not set its number of engines, or nothing was reported.
   */
  readonly of: (run: Run, now: number) => ObservedLoad | null
}

export const makeModelLoads = ({ isAtMaximum, needsScaling }: LoadRules): ModelLoads => {
  const known = new Map<DeploymentId, KnownLoad>()

  const next = (before: KnownLoad | undefined, { replicas, requests }: ReportedLoad, now: number): KnownLoad => {
    const last = before?.samples.at(-1)?.at ?? Number.NEGATIVE_INFINITY
    const earlier = before ?? { changedAt: now, since: now, samples: [], replicas, run: null, isLimited: false }
    const changedAt = earlier.replicas === replicas ? earlier.changedAt : now
    if (requests === null) return { ...earlier, replicas, changedAt }
    const hasGap = now - last > gapMillis
    return {
      replicas,
      run: earlier.run,
      isLimited: earlier.isLimited,
      changedAt,
      since: hasGap ? now : earlier.since,
      samples: addSample(hasGap ? [] : earlier.samples, { at: now, requests })
    }
  }

  /** Whether a pass is necessary. The first one reads what the number depends on. */
  const isDue = ({ isLimited, replicas, run, ...load }: KnownLoad, now: number): boolean =>
    run === null || needsScaling({ ...run, replicas }, load, now) || isAtMaximum({ ...run, replicas }, load, now) !== isLimited

  return {
    add: (loads, now) => {
      const reported = new Set(loads.map(({ run }) => run))
      for (const id of known.keys()) if (!reported.has(id)) known.delete(id)
      for (const load of loads) known.set(load.run, next(known.get(load.run), load, now))
      return loads.flatMap(({ run }) => {
        const load = known.get(run)
        return load !== undefined && isDue(load, now) ? run : []
      })
    },
    of: (run, now) => {
      const load = known.get(run.id)
      if (load === undefined || (run.scaling ?? null) === null) return null
      const replicas = run.replicas ?? 1
      // The pass may know of a change before the next report.
      const changedAt = load.replicas === replicas ? load.changedAt : now
      const { samples, since } = load
      const observed = { changedAt, since, samples }
      known.set(run.id, { ...observed, replicas, run, isLimited: isAtMaximum(run, observed, now) })
      return observed
    },
    remembers: (id) => known.has(id),
    forget: (id) => Effect.sync(() => void known.delete(id))
  }
}
