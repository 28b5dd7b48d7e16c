import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EngineConnection } from "../../src/benchmark/EngineConnection.ts"

/** An engine's address that answers with these parts and then says nothing more. */
const silentAfter = (parts: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) => {
        request.resume()
        if (parts.length === 0) return
        response.writeHead(200, { "content-type": "text/event-stream" })
        for (const part of parts) response.write(part)
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const close = () => {
          server.close()
          server.closeAllConnections()
        }
        resume(Effect.succeed({ port: address !== null && typeof address === "object" ? address.port : 0, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const frame = `data: ${JSON.stringify({ choices: [{ index: 0, text: "a", finish_reason: null }] })}\n\n`

describe("a stream of the benchmark", () => {
  for (const [what, parts] of [
    ["says nothing at all", []],
    ["falls silent within it", [frame, frame]]
  ] as const) {
    it.live(`whose engine ${what} for as long as one that hangs is stalled, and its connection is given up`, () =>
      Effect.gen(function* () {
        const { port } = yield* silentAfter(parts)
        const connection = new EngineConnection("127.0.0.1", port, 100)
        const { outcome, usage } = yield* Effect.promise(() => connection.exchange("/v1/completions", "{}"))
        assert.deepStrictEqual([outcome, usage], ["stalled", null])
        assert.isNull(connection.underWay)
      }).pipe(Effect.scoped)
    )
  }
})
