import { createServer } from "node:http"
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { lingerOnClose } from "../src/lingerOnClose.ts"

it.live("a server that is closed answers who comes once more on a connection that is open, and then takes it away", () =>
  Effect.callback<string>((resume) => {
    let said = ""
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
        said += String(chunk)
        if (closing || !said.endsWith("here")) return
        closing = true
        server.close(() => over())
        ask()
      })
      // Both ends have seen the other's last.
      let left = 2
      const over = () => {
        left--
        if (left === 0) resume(Effect.succeed(said))
      }
      socket.once("close", over)
      ask()
    })
  }).pipe(
    Effect.map((said) => assert.deepStrictEqual(said.match(/connection: [a-z-]+|here/giu), ["Connection: keep-alive", "here", "Connection: close", "here"]))
  )
)
