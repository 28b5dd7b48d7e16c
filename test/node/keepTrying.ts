import { Effect, Fiber } from "effect"
import type { Caller } from "../e2e/Caller.ts"
import { ask, streamOf, wholeOf } from "../e2e/chat.ts"

/** What a client sees of a request: `answered`, the status of an error, `cut` if the connection or the stream ends early, `silent` if nothing happens for 30 seconds. */
const attempt = (caller: Caller, model: string, stream: boolean) =>
  ask(caller, model, { stream }).pipe(
    Effect.map((answer) => {
      if (answer.status !== 200) return String(answer.status)
      if (stream) streamOf(answer)
      else wholeOf(answer)
      return "answered"
    }),
    Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.succeed("silent") }),
    Effect.catchDefect(() => Effect.succeed("cut"))
  )

/** Starts two clients, one of them streaming, that call a model continuously and also after errors. The result stops them and returns the number of each outcome. */
export const keepTrying = Effect.fnUntraced(function* (caller: Caller, model: string) {
  const counts = new Map<string, number>()
  let over = false
  const client = (stream: boolean) =>
    Effect.gen(function* () {
      while (!over) {
        const outcome = yield* attempt(caller, model, stream)
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
        yield* Effect.sleep("50 millis")
      }
    })
  const clients = yield* Effect.forkScoped(Effect.all([client(false), client(true)], { concurrency: "unbounded" }))
  return Effect.suspend(() => {
    over = true
    return Effect.as(Fiber.join(clients), counts)
  })
})
