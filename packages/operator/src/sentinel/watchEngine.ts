import type { Run, SentinelRow } from "@seatrial/store"
import { makeEngineClient } from "@seatrial/trial"
import { Clock, type Data, Duration, Effect, Random } from "effect"
import type { HttpClient } from "effect/http"
import { drainLimit } from "../limits.ts"
import { operatorMetrics } from "../metrics.ts"
import { addProbe, type DividedEvidence, divide, type Evidence, healthyMean, isDoubtful, scoreOfDistance, soonerBy } from "./evidence.ts"
import { ProbeResult, probe, probeLimit } from "./probe.ts"
import type { ProbeTarget } from "./probedEngines.ts"

/** Bytes of an answer to a probe. Log-probabilities of 256 tokens take about 30 KB. */
const mostProbeBytes = 2 ** 20

/** Intervals without a probe after which an engine is probed although it computes for others. After a difference: one. */
const busyPatience = 10

/** What the probes of an engine have shown. Times are Unix milliseconds. */
export interface EngineState extends Evidence, Pick<SentinelRow, "alarmedAt" | "probedAt"> {}

/** The same with the evidence of each text. */
type WatchedState = DividedEvidence & EngineState

export interface Watching {
  readonly run: Pick<Run, "id" | "modelId" | "orgId">
  readonly target: ProbeTarget
  readonly verified: ReadonlyArray<Float32Array>
  readonly intervalMillis: number
  /** The largest share of an engine's time that computes probes. */
  readonly share: number
  /** The evidence for an alarm. */
  readonly level: number
  /** Waits until the operator has time for another probe. */
  readonly limited: (probe: Effect.Effect<ProbeResult>) => Effect.Effect<ProbeResult>
  /** Called after each attempt with the time of the last probe. */
  readonly onAttempt: (probedAt: number) => Effect.Effect<void>
  /** Called with the state after each probe. */
  readonly onProbe: (row: SentinelRow) => Effect.Effect<void>
  /** Records the alarm. */
  readonly onAlarm: (row: SentinelRow) => Effect.Effect<void>
}

const outcomeOf = ProbeResult.$match({
  Busy: () => "busy",
  Late: () => "late",
  Failed: () => "failed",
  Incomparable: () => "incomparable",
  Probed: ({ nats }) => (scoreOfDistance(nats) > healthyMean ? "differed" : "agreed")
})

/** How long to wait for the next probe, milliseconds. */
const pauseAfter = (result: ProbeResult, state: Evidence, { intervalMillis, share }: Pick<Watching, "intervalMillis" | "share">): number => {
  const interval = isDoubtful(state) ? intervalMillis / soonerBy : intervalMillis
  const took = result._tag === "Probed" ? result.millis : result._tag === "Late" ? Duration.toMillis(probeLimit) : 0
  return Math.max(interval, took / share)
}

/**
 * The most requests among which an engine with so many slots may be probed. A slot stays free for the next request.
 * Of two slots the probe may take the last one. Otherwise an engine with one long request after another gets no probe.
 */
const busyLimit = (slots: number): number => (slots > 2 ? slots - 2 : slots - 1)

/** For how many requests the engine may compute during a probe: for none, unless it was without a probe for long. */
const mostOthers = (state: EngineState, { intervalMillis, target: { slots } }: Watching, now: number): number =>
  now - state.probedAt >= intervalMillis * (isDoubtful(state) ? 1 : busyPatience) ? busyLimit(slots ?? Number.POSITIVE_INFINITY) : 0

/**
 * The state after a probe. Requests that were under way at the last good probe count as answered after it. A busy engine
 * may have begun them as much earlier as a request may take.
 */
const probed = (state: WatchedState, { isBusy, nats }: Data.TaggedEnum.Value<ProbeResult, "Probed">, at: number): WatchedState => {
  const evidence = addProbe(state, scoreOfDistance(nats), isBusy ? at - drainLimit : at)
  return { ...state, ...evidence, probedAt: at }
}

/** Probes one start of an engine until it is interrupted. Ends by itself only if the engine cannot be compared. */
export const watchEngine = Effect.fnUntraced(function* (watching: Watching, from: EngineState): Effect.fn.Return<void, never, HttpClient.HttpClient> {
  const { intervalMillis, level, limited, onAlarm, onAttempt, onProbe, run, target, verified } = watching
  const { pod, podUid, restarts, url } = target
  const client = yield* makeEngineClient({ url, timeout: "30 seconds", mostBytes: mostProbeBytes, work: target.metrics.work })
  const rowOf = (state: EngineState): SentinelRow => ({ ...state, orgId: run.orgId, deploymentId: run.id, pod, podUid, restarts })
  let state: WatchedState = { ...from, ...divide(from, verified.length) }
  // Engines that started together are not probed together.
  yield* Effect.sleep(intervalMillis * (yield* Random.next))
  while (true) {
    const salt = `${podUid}-${state.probes}-${yield* Random.nextInt}`
    const options = { verified, turn: state.probes, salt, mostOthers: mostOthers(state, watching, yield* Clock.currentTimeMillis) }
    const result: ProbeResult = yield* limited(probe({ ...target, client }, options))
    yield* operatorMetrics.sentinelProbes.update({ outcome: outcomeOf(result) }, 1)
    if (result._tag === "Incomparable") return
    if (result._tag === "Probed") {
      state = probed(state, result, yield* Clock.currentTimeMillis)
      if (state.total >= level && state.alarmedAt === null) {
        state = { ...state, alarmedAt: state.probedAt }
        yield* onAlarm(rowOf(state))
      }
      yield* onProbe(rowOf(state))
    }
    yield* onAttempt(state.probedAt)
    yield* Effect.sleep(pauseAfter(result, state, watching))
  }
})
