import { Effect, Fiber } from "effect"
import type { Caller } from "./Caller.ts"
import { ask, requestIdOf, streamOf, wholeOf } from "./chat.ts"

/** Two clients that ask a model again and again, one of them for streams, until they are stopped: then every answer, in the order of their ends. They die of the first answer that is an error. */
export const keepAsking = Effect.fnUntraced(function* (caller: Caller, model: string) {
  const answers: Array<{ readonly id: string; readonly text: string }> = []
  let over = false
  const client = (stream: boolean) =>
    Effect.gen(function* () {
      while (!over) {
        const answer = yield* ask(caller, model, { stream })
        answers.push({ id: requestIdOf(answer), text: stream ? streamOf(answer).text : wholeOf(answer).text })
        // The engine computes on the processor that everything else needs too.
        yield* Effect.sleep("50 millis")
      }
    })
  const clients = yield* Effect.forkScoped(Effect.all([client(false), client(true)], { concurrency: "unbounded" }))
  return Effect.suspend(() => {
    over = true
    return Effect.as(Fiber.join(clients), answers)
  })
})
