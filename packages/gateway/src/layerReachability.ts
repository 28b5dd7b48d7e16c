import { engineWire } from "@seatrial/engines"
import { Routes, type UnprovenEndpoint } from "@seatrial/store"
import { Data, Effect, FiberMap, Layer, Schedule, Semaphore, Stream } from "effect"
import { EngineClient } from "./EngineClient.ts"
import { readWhole } from "./readWhole.ts"

class NotReachable extends Data.TaggedError("NotReachable")<{ readonly cause: unknown }> {}

/** Milliseconds that an engine has to answer. */
const patience = 2_000

/** Frequent at first, because most endpoints are ready when they appear; later every 5 seconds. */
const backOff = Schedule.min([Schedule.exponential("250 millis", 1.5), Schedule.spaced("5 seconds")])

/** Failures (about 20 seconds) after which a warning is logged, once. */
const warnAfter = 10

const keyOf = ({ pod, revisionId, url }: UnprovenEndpoint) => `${revisionId} ${url} ${pod}`

/**
 * Probes each endpoint that no gateway has reached yet, and records when one answers: the operator routes no traffic to
 * others. A probe is repeated until the endpoint answers or is withdrawn.
 */
export const layerReachability = Layer.effectDiscard(
  Effect.gen(function* () {
    const engine = yield* EngineClient
    const routes = yield* Routes
    const probes = yield* FiberMap.make<string>()
    // A permit is held only during a probe, so endpoints that do not answer do not block the others.
    const turns = yield* Semaphore.make(16)

    const ask = Effect.fnUntraced(function* ({ runtime, url }: UnprovenEndpoint) {
      const { signal } = new AbortController()
      const answer = yield* engine.call({
        url,
        path: engineWire(runtime).livenessPath,
        method: "GET",
        body: null,
        requestId: "reachability",
        timeout: patience,
        signal
      })
      yield* readWhole(answer, 65_536, patience, signal)
      if (answer.statusCode !== 200) return yield* new NotReachable({ cause: `status ${answer.statusCode}` })
    })
    const untilProven = (endpoint: UnprovenEndpoint) =>
      Effect.suspend(() => {
        let failures = 0
        return turns.withPermit(ask(endpoint)).pipe(
          Effect.andThen(routes.markReachable(endpoint)),
          Effect.catchCause((cause) => new NotReachable({ cause })),
          Effect.tapError(({ cause }) =>
            ++failures === warnAfter
              ? Effect.logWarning("an endpoint is not reachable; the probe is repeated", cause).pipe(Effect.annotateLogs({ url: endpoint.url }))
              : Effect.void
          ),
          Effect.retry(backOff)
        )
      })

    yield* routes.unproven.pipe(
      Stream.runForEach(
        Effect.fnUntraced(function* (unproven) {
          const wanted = new Map(unproven.map((endpoint) => [keyOf(endpoint), endpoint]))
          for (const [key] of probes) if (!wanted.has(key)) yield* FiberMap.remove(probes, key)
          for (const [key, endpoint] of wanted) yield* FiberMap.run(probes, key, untilProven(endpoint), { onlyIfMissing: true })
        })
      ),
      Effect.forkScoped
    )
  })
)
