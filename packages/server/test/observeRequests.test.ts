import { createServer, type ServerResponse } from "node:http"
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { serverMetrics } from "../src/metrics.ts"
import { observeRequests } from "../src/observeRequests.ts"

/** The state of the gauge in the global metric registry. */
const inFlight = (): unknown => Effect.runSync(Metric.snapshot).find(({ id, type }) => type === "Gauge" && id === serverMetrics.inFlight.family.name)?.state

const ask = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"

it.live("a pipelined request whose caller leaves before its turn is not counted as in flight", () =>
  Effect.callback<ReadonlyArray<unknown>>((resume) => {
    const states: Array<unknown> = []
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
        states.push(inFlight())
        // `close` of the previous response is emitted right after this.
        const leave = () => {
          states.push(inFlight())
          socket.destroy()
        }
        second?.once("socket", () => process.nextTick(leave))
        second?.once("close", () =>
          server.close(() => {
            states.push(inFlight())
            resume(Effect.succeed(states))
          })
        )
        first?.end("here")
      })
    })
  }).pipe(Effect.map((states) => assert.deepStrictEqual(states, [{ value: 1 }, { value: 1 }, { value: 0 }])))
)
