import { createServer } from "node:http"
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { lingerOnClose } from "../src/lingerOnClose.ts"

it.live("a closing server answers one more request on an open connection and then closes it", () =>
  Effect.callback<string>((resume) => {
    let received = ""
    const server = lingerOnClose(
      createServer((_, response) => void response.end("here")),
      60_000
    )
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      if (address === null || typeof address === "string") return resume(Effect.die(new Error("no port")))
      const socket = connect(address.port, "127.0.0.1")
      const ask = () => socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
      let closing = false
      socket.on("data", (chunk) => {
        received += String(chunk)
        if (closing || !received.endsWith("here")) return
        closing = true
        server.close(() => over())
        ask()
      })
      // Both ends have received the end of the other.
      let left = 2
      const over = () => {
        left--
        if (left === 0) resume(Effect.succeed(received))
      }
      socket.once("close", over)
      ask()
    })
  }).pipe(
    Effect.map((said) => assert.deepStrictEqual(said.match(/connection: [a-z-]+|here/giu), ["Connection: keep-alive", "here", "Connection: close", "here"]))
  )
)
