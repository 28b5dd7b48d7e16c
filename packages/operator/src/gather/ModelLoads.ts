import type { DeploymentId } from "@seatrial/domain"
import type { ReportedLoad, Run } from "@seatrial/store"
import { Effect } from "effect"
import { addSample, type ObservedLoad } from "../observation/ObservedLoad.ts"
import type { RunStore } from "../RunStore.ts"

/** Without a report for longer than this, the load was not observed without a gap, milliseconds. */
const gapMillis = 30_000

/** A rise of the load that does not count yet. */
interface Rise {
  /** The newest report when the rise was read first, Unix milliseconds of the database. */
  readonly since: number
  /** The lowest load that was read since. */
  readonly requests: number
}

interface KnownLoad extends ObservedLoad {
  readonly rise: Rise | null
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

/**
 * The load that counts after a report; null if none does yet. `before`: the load that counted before. A rise counts once
 * every gateway with requests has written since it was read first. Otherwise the requests of a gateway that died would
 * count twice, because callers send them again through another one.
 */
const countLoad = (before: number | null, rise: Rise | null, requests: number, { newestReport, oldestReport }: ReportedLoad) => {
  if (requests <= (before ?? 0) || newestReport === null || oldestReport === null) return { counted: requests, rise: null }
  const next = { since: rise?.since ?? newestReport, requests: Math.min(requests, rise?.requests ?? requests) }
  if (oldestReport < next.since) return { counted: before, rise: next }
  return { counted: next.requests, rise: requests > next.requests ? { since: newestReport, requests } : null }
}

export const makeModelLoads = ({ isAtMaximum, needsScaling }: LoadRules): ModelLoads => {
  const known = new Map<DeploymentId, KnownLoad>()

  const next = (before: KnownLoad | undefined, report: ReportedLoad, now: number): KnownLoad => {
    const { replicas, requests } = report
    const last = before?.samples.at(-1)?.at ?? Number.NEGATIVE_INFINITY
    const earlier = before ?? { changedAt: now, since: now, samples: [], replicas, rise: null, run: null, isLimited: false }
    const changedAt = earlier.replicas === replicas ? earlier.changedAt : now
    if (requests === null) return { ...earlier, replicas, changedAt, rise: null }
    const hasGap = now - last > gapMillis
    const samples = hasGap ? [] : earlier.samples
    const { counted, rise } = countLoad(samples.at(-1)?.requests ?? null, earlier.rise, requests, report)
    return {
      replicas,
      rise,
      run: earlier.run,
      isLimited: earlier.isLimited,
      changedAt,
      since: hasGap ? now : earlier.since,
      samples: counted === null ? samples : addSample(samples, { at: now, requests: counted })
    }
  }

  /** Whether a pass is necessary. The first one reads what the number depends on. */
  const isDue = ({ isLimited, replicas, rise: _, run, ...load }: KnownLoad, now: number): boolean =>
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
      const { rise, samples, since } = load
      const observed = { changedAt, since, samples }
      known.set(run.id, { ...observed, replicas, rise, run, isLimited: isAtMaximum(run, observed, now) })
      return observed
    },
    remembers: (id) => known.has(id),
    forget: (id) => Effect.sync(() => void known.delete(id))
  }
}
