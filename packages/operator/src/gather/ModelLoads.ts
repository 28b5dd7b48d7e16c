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
}

/** The loads of models whose number of engines the autoscaler sets, by the run that owns the engines. */
export interface ModelLoads extends RunStore {
  /**
   * Adds what gateways report. Returns the runs whose number of engines must change, and those that had no pass yet.
   */
  readonly add: (loads: ReadonlyArray<ReportedLoad>, now: number) => ReadonlyArray<DeploymentId>
  /**
   * The load of the run's model; null if the autoscaler does not set its number of engines, or nothing was reported.
   */
  readonly of: (run: Run, now: number) => ObservedLoad | null
}

/** `isChanged`: whether a pass with that load would change the number of engines. */
export const makeModelLoads = (isChanged: (run: Run, load: ObservedLoad, now: number) => boolean): ModelLoads => {
  const known = new Map<DeploymentId, KnownLoad>()

  const next = (before: KnownLoad | undefined, { replicas, requests }: ReportedLoad, now: number): KnownLoad => {
    const last = before?.samples.at(-1)?.at ?? Number.NEGATIVE_INFINITY
    const earlier = before ?? { changedAt: now, since: now, samples: [], replicas, run: null }
    const changedAt = earlier.replicas === replicas ? earlier.changedAt : now
    if (requests === null) return { ...earlier, replicas, changedAt }
    const hasGap = now - last > gapMillis
    return {
      replicas,
      run: earlier.run,
      changedAt,
      since: hasGap ? now : earlier.since,
      samples: addSample(hasGap ? [] : earlier.samples, { at: now, requests })
    }
  }

  /** Whether a pass is necessary. The first one reads what the number depends on. */
  const isDue = ({ replicas, run, ...load }: KnownLoad, now: number): boolean => run === null || isChanged({ ...run, replicas }, load, now)

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
      known.set(run.id, { ...load, replicas, changedAt, run })
      const { samples, since } = load
      return { changedAt, since, samples }
    },
    remembers: (id) => known.has(id),
    forget: (id) => Effect.sync(() => void known.delete(id))
  }
}
