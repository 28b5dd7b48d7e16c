import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeStage } from "./stage.ts"

const mib = 2 ** 20

it.live("of the body of a refused request at most 16 MiB are read", () =>
  Effect.gen(function* () {
    const { address } = yield* makeStage([])
    const { hostname, port } = new URL(address)
    const sent = yield* Effect.callback<number>((resume) => {
      const socket = connect(Number(port), hostname)
      const chunk = Buffer.alloc(mib, " ")
      const write = () => {
        while (!socket.destroyed && socket.write(chunk)) {}
      }
      socket.on("drain", write)
      socket.on("error", () => {})
      socket.on("close", () => resume(Effect.succeed(socket.bytesWritten)))
      socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${4 * 2 ** 30}\r\n\r\n`)
      write()
      return Effect.sync(() => socket.destroy())
    })
    // Some of it is in the buffers of the system.
    assert.isBelow(sent, 32 * mib)
    assert.isAbove(sent, 15 * mib)
  }).pipe(Effect.scoped)
)
