import { type Duration, Effect, Fiber } from "effect"
import type { Caller } from "./Caller.ts"
import { ask, requestIdOf, streamOf, wholeOf } from "./chat.ts"

/**
 * Starts two clients, one of them streaming, that call a model continuously. The result stops them and returns all answers in the order of
 * completion. Each waits for `pause` between two requests. A client dies on the first error.
 */
export const keepAsking = Effect.fnUntraced(function* (caller: Caller, model: string, pause: Duration.Input = "50 millis") {
  const answers: Array<{ readonly id: string; readonly text: string }> = []
  let over = false
  const client = (stream: boolean) =>
    Effect.gen(function* () {
      while (!over) {
        const answer = yield* ask(caller, model, { stream })
        answers.push({ id: requestIdOf(answer), text: stream ? streamOf(answer).text : wholeOf(answer).text })
        // The engine shares the processor with everything else.
        yield* Effect.sleep(pause)
      }
    })
  const clients = yield* Effect.forkScoped(Effect.all([client(false), client(true)], { concurrency: "unbounded" }))
  return Effect.suspend(() => {
    over = true
    return Effect.as(Fiber.join(clients), answers)
  })
})
