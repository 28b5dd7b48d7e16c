import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { sendRequest } from "./sendRequest.ts"

const depth = 30_000
const body = `{"model":"tiny","messages":${"[".repeat(depth)}${"]".repeat(depth)}}`

attack({
  name: "bodies nested 30,000 deep are refused, and slow down nobody else",
  run: (stage) =>
    Effect.forEach(Array.from({ length: 4 }), () => Effect.forever(Effect.andThen(sendRequest(stage, { body }), Effect.sleep("20 millis"))), {
      concurrency: "unbounded",
      discard: true
    }),
  verify: ({ answers }) => Effect.sync(() => assert.deepStrictEqual([...answers.keys()], ["400"]))
})
