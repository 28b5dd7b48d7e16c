import { Routes, type UnprovenEndpoint } from "@seatrial/store"
import { Data, Effect, Layer, Schedule, Stream } from "effect"
import { EngineClient } from "./EngineClient.ts"

class NotReady extends Data.TaggedError("NotReady") {}

/** Asks each endpoint that no gateway has reached yet whether it is there, and tells so: the operator sends no traffic to others. */
export const layerReachability = Layer.effectDiscard(
  Effect.gen(function* () {
    const engine = yield* EngineClient
    const routes = yield* Routes
    const { signal } = new AbortController()
    const prove = Effect.fnUntraced(function* ({ revisionId, url }: UnprovenEndpoint) {
      const answer = yield* engine.call({ url, path: "/health", method: "GET", body: null, requestId: "reachability", timeout: 2_000, signal })
      answer.resume()
      if (answer.statusCode !== 200) return yield* new NotReady()
      yield* routes.markReachable(revisionId, url)
    })
    const untilProven = (endpoint: UnprovenEndpoint) =>
      prove(endpoint).pipe(
        Effect.retry(Schedule.spaced("500 millis").pipe(Schedule.upTo({ times: 20 }))),
        Effect.catchCause((cause) => Effect.logWarning("an endpoint is not reachable", cause).pipe(Effect.annotateLogs({ url: endpoint.url })))
      )
    yield* routes.unproven.pipe(Stream.mapEffect(untilProven, { concurrency: 16, unordered: true }), Stream.runDrain, Effect.forkScoped)
  })
)
