import type { DeploymentId } from "@seatrial/domain"
import { type AlarmedEngine, type EngineStarted, type Run, Runs, type SentinelRow, Sentinels } from "@seatrial/store"
import { probedLikelihood, suite } from "@seatrial/trial"
import { Cause, Clock, Effect, FiberMap, Option, Schedule, type Scope, Semaphore } from "effect"
import type { HttpClient } from "effect/http"
import { operatorMetrics } from "../metrics.ts"
import type { RunStore } from "../RunStore.ts"
import { alarmLevel, noEvidence } from "./evidence.ts"
import type { FollowedPod, ProbeTarget } from "./probedEngines.ts"
import { makeStateWriter, type StateWriter } from "./stateWriter.ts"
import { type EngineState, watchEngine } from "./watchEngine.ts"

/** Probes at once, over all engines. */
const mostProbes = 16
/** The time between two probes, so that probes of many engines do not keep the operator from its passes. */
const probeSpacing = "20 millis"

/** Limits the probes of all engines together. They wait in the order in which they were due. */
const makeLimit = Effect.gen(function* () {
  const [turn, slots] = [yield* Semaphore.make(1), yield* Semaphore.make(mostProbes)]
  return <A>(probe: Effect.Effect<A>): Effect.Effect<A> => Effect.andThen(turn.withPermits(1)(Effect.sleep(probeSpacing)), slots.withPermits(1)(probe))
})

/** Probes the engines that serve, and reports those whose answers differ from the verified ones. */
export interface SentinelKeeper extends RunStore {
  /** Probes exactly the targets among these pods of the run from now on. */
  readonly follow: (run: Run, pods: ReadonlyArray<FollowedPod>) => Effect.Effect<void>
}

export interface SentinelOptions {
  /** Seconds between two probes of an engine; 0 for no probes. */
  readonly seconds: number
  /** The largest share of an engine's time that computes probes. */
  readonly share: number
  /** The probability with which a healthy engine may get an alarm within a year. */
  readonly alpha: number
  /** Called for each new alarm, after it was recorded. */
  readonly onAlarm: (id: DeploymentId, engine: AlarmedEngine) => Effect.Effect<void>
}

interface FollowedEngine extends EngineStarted {
  /** The name of the model in its probes. */
  readonly servedName: string
  isProbed: boolean
}

/** Whether the engine is probed as the target says. */
const isFollowed = (engine: FollowedEngine | undefined, { podUid, restarts, servedName }: ProbeTarget): boolean =>
  engine?.isProbed === true && engine.podUid === podUid && engine.restarts === restarts && engine.servedName === servedName

/** The time between two updates of the metric below. */
const unprobedPause = "10 seconds"

/** Shows the longest time without a probe, over all engines that are probed, until the scope closes. Times are Unix milliseconds. */
const makeUnprobed = Effect.gen(function* () {
  const { sentinelUnprobed } = operatorMetrics
  const probedAt = new Map<string, number>()
  const show = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    let earliest = now
    for (const at of probedAt.values()) earliest = Math.min(earliest, at)
    return sentinelUnprobed.update({}, (now - earliest) / 1_000)
  })
  yield* Effect.addFinalizer(() => sentinelUnprobed.remove({}))
  // At intervals, because an attempt must not cost more the more engines there are.
  yield* Effect.forkScoped(Effect.repeat(show, Schedule.spaced(unprobedPause)))
  return {
    attempted: (pod: string, at: number) => Effect.sync(() => void probedAt.set(pod, at)),
    remove: (pod: string) => Effect.sync(() => void probedAt.delete(pod))
  }
})

interface FollowedRun {
  /** The log-probabilities of the trial; null if there are none, undefined before they were read. */
  verified: ReadonlyArray<Float32Array> | null | undefined
  /** By the name of the pod. */
  readonly engines: Map<string, FollowedEngine>
}

/** The log-probabilities of the revision's trial that probes are compared with; null if there are none. */
const readVerified = Effect.fnUntraced(function* (run: Run, { revisionId }: ProbeTarget) {
  const recorded = yield* (yield* Runs).likelihood(run.orgId, revisionId)
  return recorded?.likelihood == null || recorded.suiteVersion < suite.textsSince ? null : probedLikelihood(recorded.likelihood)
})

/** The stored state of that start of an engine. */
const readState = Effect.fnUntraced(function* (target: ProbeTarget, writer: StateWriter): Effect.fn.Return<EngineState, never, Sentinels> {
  const waiting = writer.waiting(target.podUid)
  if (waiting?.restarts === target.restarts) return waiting
  const stored = yield* (yield* Sentinels).read(target)
  const now = yield* Clock.currentTimeMillis
  return Option.getOrElse(stored, () => ({ ...noEvidence(now), probedAt: now, alarmedAt: null }))
})

/** Repeats what needs the database until it answers. */
const untilDone = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, never, R> =>
  effect.pipe(
    Effect.sandbox,
    Effect.tapError((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning("a probed engine waits for the database", Cause.pretty(cause))
    ),
    Effect.retry(Schedule.spaced("10 seconds")),
    Effect.orDie
  )

/** Records an alarm and reports it. Not interrupted in between: an alarm that is recorded is reported. */
const recordAlarm = (run: Run, target: ProbeTarget, { onAlarm }: SentinelOptions, row: SentinelRow) =>
  Effect.gen(function* () {
    const store = yield* Sentinels
    const { node, pod, podUid, restarts, revisionId } = target
    const lately = yield* store.raise({ modelId: run.modelId, revisionId, node, row })
    yield* operatorMetrics.sentinelAlarms.update({}, 1)
    yield* Effect.logWarning(`${run.id}: the probes of ${pod} differ from its trial; evidence ${row.total.toExponential(1)} after ${row.probes} probes`)
    yield* onAlarm(run.id, { pod, podUid, restarts, alarmedAt: row.alarmedAt ?? row.probedAt, since: row.goodAt, probes: row.probes - row.goodProbes, lately })
  }).pipe(Effect.uninterruptible, untilDone)

/** Keeps the probes of all engines running until the scope closes. */
export const makeSentinelKeeper = Effect.fnUntraced(function* (
  options: SentinelOptions
): Effect.fn.Return<SentinelKeeper, never, HttpClient.HttpClient | Runs | Scope.Scope | Sentinels> {
  const services = yield* Effect.context<HttpClient.HttpClient | Runs | Sentinels>()
  const fibers = yield* FiberMap.make<string>()
  const writer = yield* makeStateWriter
  const unprobed = yield* makeUnprobed
  const limited = yield* makeLimit
  const runs = new Map<DeploymentId, FollowedRun>()
  const intervalMillis = options.seconds * 1_000
  const level = alarmLevel(options.alpha, intervalMillis)

  const watch = Effect.fnUntraced(function* (run: Run, followed: FollowedRun, target: ProbeTarget) {
    const verified = followed.verified === undefined ? yield* untilDone(readVerified(run, target)) : followed.verified
    followed.verified = verified
    if (verified === null) return
    const state = yield* untilDone(readState(target, writer))
    const onProbe = (row: SentinelRow) => Effect.sync(() => writer.put(row))
    const onAlarm = (row: SentinelRow) => Effect.provideContext(recordAlarm(run, target, options, row), services)
    const onAttempt = (probedAt: number) => unprobed.attempted(target.pod, probedAt)
    const watching = { run, target, verified, intervalMillis, share: options.share, level, limited, onAttempt, onProbe, onAlarm }
    yield* Effect.ensuring(watchEngine(watching, state), unprobed.remove(target.pod))
  })

  /** The pod gets no probes any more. Its state is kept while it exists. */
  const stop = Effect.fnUntraced(function* (pod: string, engine: FollowedEngine) {
    if (!engine.isProbed) return
    engine.isProbed = false
    yield* FiberMap.remove(fibers, pod)
  })

  const dropGone = Effect.fnUntraced(function* ({ engines }: FollowedRun, pods: ReadonlyArray<FollowedPod>) {
    for (const [pod, engine] of engines) {
      if (pods.some(({ uid }) => uid === engine.podUid)) continue
      yield* stop(pod, engine)
      engines.delete(pod)
      writer.remove(engine.podUid)
    }
  })

  const followPod = Effect.fnUntraced(function* (run: Run, followed: FollowedRun, { pod, target }: FollowedPod) {
    const known = followed.engines.get(pod)
    if (target === null) return known === undefined ? undefined : yield* stop(pod, known)
    if (isFollowed(known, target)) return
    const engine: FollowedEngine = { podUid: target.podUid, restarts: target.restarts, servedName: target.servedName, isProbed: true }
    followed.engines.set(pod, engine)
    yield* FiberMap.run(fibers, pod, Effect.provideContext(watch(run, followed, target), services))
  })

  return {
    follow: Effect.fnUntraced(function* (run, pods) {
      if (intervalMillis <= 0) return
      const followed = runs.get(run.id) ?? { verified: undefined, engines: new Map<string, FollowedEngine>() }
      yield* dropGone(followed, pods)
      for (const pod of pods) yield* followPod(run, followed, pod)
      if (followed.engines.size > 0) runs.set(run.id, followed)
      else runs.delete(run.id)
    }),
    remembers: (id) => runs.has(id),
    forget: Effect.fnUntraced(function* (id) {
      const followed = runs.get(id)
      if (followed !== undefined) yield* dropGone(followed, [])
      runs.delete(id)
    })
  }
})
