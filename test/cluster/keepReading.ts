import { Effect, Fiber } from "effect"
import type { Caller } from "../e2e/Caller.ts"

/** A client that lists its deployments again and again until it is stopped: then how often it was answered, and what else it got. */
export const keepReading = Effect.fnUntraced(function* (caller: Caller) {
  let answered = 0
  const failures: Array<string> = []
  let over = false
  const client = Effect.gen(function* () {
    while (!over) {
      const answer = yield* Effect.exit(caller.call("GET", "/v1/org/deployments"))
      if (answer._tag === "Failure") failures.push(String(answer.cause))
      else if (answer.value.status === 200) answered++
      else failures.push(`${answer.value.status} ${answer.value.text}`)
      yield* Effect.sleep("50 millis")
    }
  })
  const fiber = yield* Effect.forkScoped(client)
  return Effect.suspend(() => {
    over = true
    return Effect.as(Fiber.join(fiber), { answered, failures })
  })
})
