import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { openConnection } from "./sendRequest.ts"

const smuggled = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"

/** Each is followed by a request that a proxy in front may take for the start of another one. */
const requests = [
  `POST /v1/chat/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  `BREW /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`,
  `CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n${smuggled}`
]

attack({
  name: "requests with an ambiguous end are refused, and nothing after them on the connection is answered",
  run: (stage) =>
    Effect.gen(function* () {
      const sockets = yield* Effect.forEach(requests, () => openConnection(stage))
      for (const [index, socket] of sockets.entries()) socket.write(requests[index] ?? "")
      yield* Effect.callback<void>((resume) => {
        const settle = () => (sockets.every(({ closed }) => closed) ? resume(Effect.void) : undefined)
        for (const socket of sockets) socket.once("close", settle)
        settle()
      })
      yield* Effect.sleep("30 millis")
    }),
  // A request after them would be answered with 401.
  verify: ({ answers }) => Effect.sync(() => assert.deepStrictEqual([...answers.keys()].filter((answer) => answer !== "closed").sort(), ["400", "501"]))
})
