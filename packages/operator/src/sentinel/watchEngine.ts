import type { Run, SentinelRow } from "@seatrial/store"
import { makeEngineClient } from "@seatrial/trial"
import { Clock, Duration, Effect, Random } from "effect"
import type { HttpClient } from "effect/http"
import { operatorMetrics } from "../metrics.ts"
import { addProbe, type Evidence, healthyMean, isDoubtful, scoreOfDistance, soonerBy } from "./evidence.ts"
import { ProbeResult, probe, probeLimit } from "./probe.ts"
import type { ProbeTarget } from "./probedEngines.ts"

/** Bytes of an answer to a probe. Log-probabilities of 256 tokens take about 30 KB. */
const mostProbeBytes = 2 ** 20

/** What the probes of an engine have shown. Times are Unix milliseconds. */
export interface EngineState extends Evidence, Pick<SentinelRow, "alarmedAt" | "goodAt" | "goodProbes" | "probedAt"> {}

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

/** The state after a probe with that distance. */
const probed = (state: EngineState, nats: number, at: number): EngineState => {
  const evidence = addProbe(state, scoreOfDistance(nats))
  const good = isDoubtful(evidence) ? {} : { goodAt: at, goodProbes: evidence.probes }
  return { ...state, ...evidence, probedAt: at, ...good }
}

/** Probes one start of an engine until it is interrupted. Ends by itself only if the engine cannot be compared. */
export const watchEngine = Effect.fnUntraced(function* (
  { intervalMillis, level, limited, onAlarm, onProbe, run, share, target, verified }: Watching,
  from: EngineState
): Effect.fn.Return<void, never, HttpClient.HttpClient> {
  const { pod, podUid, restarts, url } = target
  const client = yield* makeEngineClient({ url, timeout: "30 seconds", mostBytes: mostProbeBytes, work: target.metrics.work })
  const rowOf = (state: EngineState): SentinelRow => ({ ...state, orgId: run.orgId, deploymentId: run.id, pod, podUid, restarts })
  let state = from
  // Engines that started together are not probed together.
  yield* Effect.sleep(intervalMillis * (yield* Random.next))
  while (true) {
    const salt = `${podUid}-${state.probes}-${yield* Random.nextInt}`
    const result: ProbeResult = yield* limited(probe({ ...target, client }, verified, state.probes, salt))
    yield* operatorMetrics.sentinelProbes.update({ outcome: outcomeOf(result) }, 1)
    if (result._tag === "Incomparable") return
    if (result._tag === "Probed") {
      state = probed(state, result.nats, yield* Clock.currentTimeMillis)
      if (state.total >= level && state.alarmedAt === null) {
        state = { ...state, alarmedAt: state.probedAt }
        yield* onAlarm(rowOf(state))
      }
      yield* onProbe(rowOf(state))
    }
    yield* Effect.sleep(pauseAfter(result, state, { intervalMillis, share }))
  }
})
