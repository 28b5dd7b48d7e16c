import { Cause, Effect, Exit, Fiber } from "effect"
import type { Caller } from "../e2e/Caller.ts"
import { ask, requestIdOf, streamOf, wholeOf } from "../e2e/chat.ts"

/** A request without a complete answer. Times are Unix milliseconds. */
export interface FailedRequest {
  readonly stream: boolean
  readonly startedAt: number
  readonly endedAt: number
  readonly cause: string
}

/** Like `keepAsking`, but the clients continue after a failure. The result stops them and returns all answers and all failures. */
export const askThroughout = Effect.fnUntraced(function* (caller: Caller, model: string) {
  const answers: Array<{ readonly id: string; readonly text: string }> = []
  const failures: Array<FailedRequest> = []
  let over = false
  const client = (stream: boolean) =>
    Effect.gen(function* () {
      while (!over) {
        const startedAt = Date.now()
        const answered = Effect.map(ask(caller, model, { stream }), (answer) => ({
          id: requestIdOf(answer),
          text: stream ? streamOf(answer).text : wholeOf(answer).text
        }))
        const exit = yield* Effect.exit(answered)
        if (Exit.isSuccess(exit)) answers.push(exit.value)
        else failures.push({ stream, startedAt, endedAt: Date.now(), cause: Cause.pretty(exit.cause).slice(0, 500) })
        yield* Effect.sleep("300 millis")
      }
    })
  const clients = yield* Effect.forkScoped(Effect.all([client(false), client(true)], { concurrency: "unbounded" }))
  return Effect.suspend(() => {
    over = true
    return Effect.as(Fiber.join(clients), { answers, failures })
  })
})
