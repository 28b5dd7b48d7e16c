import { assert } from "@effect/vitest"
import { makeApiKey } from "@seatrial/domain"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { sendRequest } from "./sendRequest.ts"

attack({
  name: "guessed API keys with a correct checksum are refused, and slow down nobody else",
  run: (stage) =>
    Effect.forEach(
      Array.from({ length: 48 }),
      () =>
        Effect.forever(
          Effect.andThen(
            Effect.suspend(() => sendRequest(stage, { secret: makeApiKey(crypto.getRandomValues(new Uint8Array(128))), body: { model: stage.model } })),
            Effect.sleep("20 millis")
          )
        ),
      { concurrency: "unbounded", discard: true }
    ),
  verify: ({ answers }) =>
    Effect.sync(() => {
      assert.deepStrictEqual([...answers.keys()].sort(), ["401", "429"])
      // 30 at once and one a second, of each run of the attack.
      assert.isBelow(answers.get("401") ?? 0, (answers.get("429") ?? 0) / 10)
    })
})
