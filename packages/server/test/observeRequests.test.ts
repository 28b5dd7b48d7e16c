import { createServer, type ServerResponse } from "node:http"
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { serverMetrics } from "../src/metrics.ts"
import { observeRequests } from "../src/observeRequests.ts"

/** What the gauge says; in the registry that the measures of a running server are in. */
const inFlight = (): unknown => Effect.runSync(Metric.snapshot).find(({ id, type }) => type === "Gauge" && id === serverMetrics.inFlight.family.name)?.state

const ask = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"

it.live("a request whose caller leaves before its turn on the connection is not counted as one that is being answered", () =>
  Effect.callback<ReadonlyArray<unknown>>((resume) => {
    const seen: Array<unknown> = []
    const answers: Array<ServerResponse> = []
    const server = createServer()
    observeRequests(server)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      if (address === null || typeof address === "string") return resume(Effect.die(new Error("no port")))
      const socket = connect(address.port, "127.0.0.1", () => socket.write(ask.repeat(3)))
      socket.resume()
      server.on("request", (_, response) => {
        answers.push(response)
        if (answers.length < 3) return
        const [first, second] = answers
        seen.push(inFlight())
        // The end of the one before is told right behind.
        const leave = () => {
          seen.push(inFlight())
          socket.destroy()
        }
        second?.once("socket", () => process.nextTick(leave))
        second?.once("close", () =>
          server.close(() => {
            seen.push(inFlight())
            resume(Effect.succeed(seen))
          })
        )
        first?.end("here")
      })
    })
  }).pipe(Effect.map((seen) => assert.deepStrictEqual(seen, [{ value: 1 }, { value: 1 }, { value: 0 }])))
)
