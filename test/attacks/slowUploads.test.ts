import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { openConnection } from "./sendRequest.ts"

const bodyBytes = 8 * 1024 * 1024

attack({
  name: "60 uploads of 8 MiB from one key, held just short of complete, do not use up the memory for bodies of others",
  // The rate of the second window of five seconds is too low.
  seconds: 13,
  run: (stage) =>
    Effect.gen(function* () {
      const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${stage.attacker.secret}\r\nContent-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n\r\n`
      const almostAll = Buffer.alloc(bodyBytes - 1_000, " ")
      const sockets = yield* Effect.forEach(Array.from({ length: 60 }), () => openConnection(stage))
      for (const socket of sockets) {
        socket.write(head)
        socket.write(almostAll)
        yield* Effect.sleep("40 millis")
      }
      yield* Effect.never
    }),
  // Those that had a share are refused when nothing more comes.
  verify: ({ answers }) => Effect.sync(() => assert.deepStrictEqual([...answers.keys()].filter((answer) => answer !== "closed").sort(), ["400", "429"]))
})
