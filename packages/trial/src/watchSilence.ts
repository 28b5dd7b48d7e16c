import type { MetricSeries } from "@seatrial/domain"
import { monotonicMillis } from "@seatrial/domain"
import { Duration, Effect } from "effect"
import { type HttpClient, HttpClientRequest } from "effect/http"
import { answerText, mostMetricsBytes } from "./answerText.ts"
import { EngineUnreachable } from "./engineAnswers.ts"
import { gauge } from "./gauge.ts"

/** Time limit for reading the counters. A computing engine answers this in parallel. */
const counterTimeout = Duration.seconds(5)

/**
 * Factor by which the silence limit is extended if the counters cannot be read: a busy engine may fail to report them.
 */
const unreadPatience = 3

/** An engine that a client connects to. */
export interface EngineAddress {
  readonly url: string
  /** How long the engine may be silent. */
  readonly timeout: Duration.Input
  /** Bytes of an answer; absent: enough for all that a trial asks. */
  readonly mostBytes?: number
  /** The metrics that move while the engine computes. */
  readonly work: ReadonlyArray<MetricSeries>
}

/** Watches for how long an engine is silent. Every exchange of a client shares one watch. */
export interface SilenceWatch {
  /** Records that the engine sent something. Succeeds with the time in monotonic milliseconds. */
  readonly recordSign: Effect.Effect<number>
  /** The time of the last sign of the engine. Reads the counters. */
  readonly lastSignAt: Effect.Effect<number>
  /** Fails an exchange if the engine is silent for too long. */
  readonly bounded: <A, E>(exchange: Effect.Effect<A, E>) => Effect.Effect<A, E | EngineUnreachable>
}

/**
 * Makes the watch of an engine. Its work is the sum of its counters since its start, for all clients: if it changes,
 * the engine computes.
 */
export const watchSilence = Effect.fnUntraced(function* (http: HttpClient.HttpClient, { timeout, url, work }: EngineAddress): Effect.fn.Return<SilenceWatch> {
  const silentFor = Math.round(Duration.toSeconds(Duration.fromInputUnsafe(timeout)))
  const silent = () => Effect.fail(new EngineUnreachable({ message: `The engine did not answer within ${silentFor} seconds.`, silentFor }))
  let heardAt = Number.NEGATIVE_INFINITY
  const recordSign = Effect.map(monotonicMillis, (at) => {
    heardAt = at
    return at
  })
  let done: number | null = null
  // Shared by all waiting exchanges. Succeeds with whether the counters could be read.
  const readCounters = yield* Effect.cachedWithTTL(
    http.execute(HttpClientRequest.get(`${url}/metrics`)).pipe(
      Effect.flatMap((response) => answerText(response, mostMetricsBytes)),
      Effect.timeout(counterTimeout),
      Effect.orElseSucceed(() => null),
      Effect.flatMap((metrics) => {
        const now = metrics === null ? null : gauge(metrics, work)
        const moved = now !== null && now !== done
        done = now ?? done
        return Effect.as(moved ? recordSign : Effect.void, metrics !== null)
      })
    ),
    "1 second"
  )
  // Reads the counters in the middle and at the end of a silence: each read costs an engine that answers nothing.
  const silence = Effect.gen(function* () {
    const begunAt = yield* monotonicMillis
    const quiet = Effect.map(monotonicMillis, (at) => at - Math.max(begunAt, heardAt))
    const limitMillis = silentFor * 1_000
    let hasRead = false
    while (true) {
      const spent = yield* quiet
      if (spent < limitMillis / 2) {
        hasRead = false
        yield* Effect.sleep(limitMillis / 2 - spent)
      } else if (!hasRead) {
        hasRead = true
        yield* readCounters
      } else if (spent < limitMillis) yield* Effect.sleep(limitMillis - spent)
      else {
        const isRead = yield* readCounters
        if ((yield* quiet) >= limitMillis * (isRead ? 1 : unreadPatience)) return yield* silent()
        if (!isRead) yield* Effect.sleep(limitMillis / 2)
      }
    }
  })
  return { recordSign, lastSignAt: Effect.map(readCounters, () => heardAt), bounded: (exchange) => Effect.raceFirst(exchange, silence) }
})
