import { Clock, Effect, Fiber } from "effect"
import { ask, streamOf, wholeOf } from "../e2e/chat.ts"
import type { FaultStage } from "./FaultStage.ts"

const answered = (answer: Parameters<typeof wholeOf>[0], stream: boolean) =>
  Effect.try({ try: () => (stream ? streamOf(answer) : wholeOf(answer)), catch: (cause) => (cause instanceof Error ? cause.message : String(cause)) })

/**
 * Two clients, by default one of them for streams, that ask until they are stopped: then how often they were answered, and what went wrong outside of Postgres' outages, in which
 * the gateway may refuse.
 */
export const askThroughout = Effect.fnUntraced(function* ({ caller, model, outages }: FaultStage, streams: readonly [boolean, boolean] = [false, true]) {
  const counts = { answered: 0, refused: 0 }
  const failures: Array<string> = []
  let over = false
  const client = (stream: boolean) =>
    Effect.gen(function* () {
      while (!over) {
        const from = yield* Clock.currentTimeMillis
        const answer = yield* ask(caller, model, { stream })
        const to = yield* Clock.currentTimeMillis
        const outcome = yield* Effect.result(answered(answer, stream))
        if (outcome._tag === "Success") counts.answered++
        else if (outages.some((outage) => from <= outage.to && to >= outage.from)) counts.refused++
        else failures.push(outcome.failure)
        yield* Effect.sleep("50 millis")
      }
    })
  const clients = yield* Effect.forkScoped(Effect.all(streams.map(client), { concurrency: "unbounded" }))
  return Effect.suspend(() => {
    over = true
    return Effect.as(Fiber.join(clients), { ...counts, failures })
  })
})
