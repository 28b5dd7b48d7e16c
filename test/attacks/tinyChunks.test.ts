import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { attack } from "./attack.ts"
import { openConnection } from "./sendRequest.ts"

/** 60,000 chunks of one byte: 360 kB on the wire. Node hands over each chunk that one read of a connection brings, so each connection costs some 7 ms before it is refused. */
const chunks = "1\r\na\r\n".repeat(60_000)
const head = (key: string) =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\n`

for (const isKnown of [false, true]) {
  const whose = isKnown ? "a caller with a key" : "a caller without a key"
  attack({
    name: `bodies in chunks of one byte, from ${whose}, use little memory and delay nobody else`,
    run: (stage) =>
      Effect.gen(function* () {
        const sockets = yield* Effect.all(Array.from({ length: 4 }, () => openConnection(stage)))
        for (const socket of sockets) socket.write(head(isKnown ? stage.attacker.secret : "seatrial_none") + chunks)
        yield* Effect.sleep("2 seconds")
      }),
    verify: (_, stage) =>
      Effect.sync(() => {
        for (const gateway of stage.gateways) assert.isBelow(gateway.residentBytes(), 600 * 2 ** 20)
      })
  })
}
