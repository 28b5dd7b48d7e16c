import { assert } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { attack } from "./attack.ts"
import { openConnection } from "./sendRequest.ts"

attack({
  name: "connections that send one header per second slow down nobody else, and are closed",
  seconds: 14,
  run: (stage) =>
    Effect.gen(function* () {
      const sockets = yield* Effect.forEach(Array.from({ length: 300 }), () => openConnection(stage))
      for (const socket of sockets) socket.write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n")
      const sendMore = Effect.sync(() => {
        for (const socket of sockets) if (socket.writable) socket.write("X-A: b\r\n")
      })
      yield* Effect.repeat(sendMore, { schedule: Schedule.spaced("1 second"), until: () => sockets.every(({ destroyed }) => destroyed) })
    }),
  verify: ({ answers }) => Effect.sync(() => assert.isAbove(answers.get("closed") ?? 0, 0, "none was closed"))
})
