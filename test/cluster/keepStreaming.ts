import { Effect, Fiber } from "effect"
import { type Caller, codeOf } from "../e2e/Caller.ts"
import { ask, streamOf } from "../e2e/chat.ts"

/** Whether the answer says that the model starts, and when to retry. */
export const isStarting = (answer: { readonly status: number; readonly text: string; readonly headers: Headers }) =>
  answer.status === 503 && codeOf(answer) === "model_starting" && /^(?:[1-9]|[1-5]\d|60)$/.test(answer.headers.get("retry-after") ?? "")

/** A client that streams in a loop and retries as the answers ask. Counts answers and requested retries, and dies on anything else. */
export const keepStreaming = Effect.fnUntraced(function* (caller: Caller, model: string) {
  const counts = { answered: 0, waits: 0 }
  let over = false
  const client = Effect.gen(function* () {
    while (!over) {
      const answer = yield* ask(caller, model, { stream: true })
      if (isStarting(answer)) counts.waits++
      else {
        streamOf(answer)
        counts.answered++
      }
      yield* Effect.sleep("50 millis")
    }
  })
  const fibre = yield* Effect.forkScoped(client)
  return {
    counts,
    /** Waits for something, and fails at once if the client has died. */
    whileAlive: <A, E, R>(wait: Effect.Effect<A, E, R>) => Effect.raceFirst(wait, Effect.andThen(Fiber.join(fibre), Effect.never)),
    stop: Effect.suspend(() => {
      over = true
      return Effect.as(Fiber.join(fibre), counts)
    })
  }
})
