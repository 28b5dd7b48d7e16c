import { Effect, Fiber } from "effect"
import type { Caller } from "./Caller.ts"
import { ask, requestIdOf } from "./chat.ts"

/**
 * That many clients call a model with different prompts until the result is run, which returns the ids of the answered
 * requests, in the order of completion. A client dies on the first error.
 */
export const keepCalling = Effect.fnUntraced(function* (caller: Caller, model: string, clients: number) {
  const answered: Array<string> = []
  let [count, isOver] = [0, false]
  const client = Effect.gen(function* () {
    while (!isOver) {
      const answer = yield* ask(caller, model, { messages: [{ role: "user", content: `Question ${++count}: what does a sea trial show?` }] })
      // The record says why.
      if (answer.status !== 200) throw new Error(`call ${count}: ${(yield* caller.call("GET", `/v1/requests/${requestIdOf(answer)}`)).text}`)
      answered.push(requestIdOf(answer))
      yield* Effect.sleep("50 millis")
    }
  })
  const calling = yield* Effect.forkScoped(
    Effect.all(
      Array.from({ length: clients }, () => client),
      { concurrency: "unbounded", discard: true }
    )
  )
  return Effect.suspend(() => {
    isOver = true
    return Effect.as(Fiber.join(calling), answered)
  })
})
