import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { dataFrame } from "@seatrial/domain"
import { Effect } from "effect"
import { EngineConnection, now } from "../../src/benchmark/EngineConnection.ts"
import { listenLocally } from "../listenLocally.ts"

/** An engine's address that answers with these parts and then says nothing more. */
const silentAfter = (parts: ReadonlyArray<string>) =>
  listenLocally(
    createServer((request, response) => {
      request.resume()
      if (parts.length === 0) return
      response.writeHead(200, { "content-type": "text/event-stream" })
      for (const part of parts) response.write(part)
    })
  )

const frame = dataFrame({ choices: [{ index: 0, text: "a", finish_reason: null }] })

describe("a stream of the benchmark", () => {
  for (const [what, parts] of [
    ["sends nothing", []],
    ["stops within an answer", [frame, frame]]
  ] as const) {
    it.live(`stalls if the engine ${what} for the stall limit, and its connection is closed`, () =>
      Effect.gen(function* () {
        const { port } = yield* silentAfter(parts)
        const connection = new EngineConnection("127.0.0.1", port, { stall: 100 })
        const { outcome, usage } = yield* Effect.promise(() => connection.exchange("/v1/completions", "{}"))
        assert.deepStrictEqual([outcome, usage], ["stalled", null])
        assert.isNull(connection.underWay)
      }).pipe(Effect.scoped)
    )
  }

  it.live("that waits for its first token while others receive theirs is queued; after its first token it can stall", () =>
    Effect.gen(function* () {
      const begin: { answer: () => void } = { answer: () => {} }
      const server = createServer((request, response) => {
        request.resume()
        begin.answer = () => response.writeHead(200, { "content-type": "text/event-stream" }).write(frame)
      })
      const { port } = yield* listenLocally(server)
      // Its first token comes after it has waited three times.
      let reads = 0
      const last = () => {
        reads++
        if (reads === 3) begin.answer()
        return reads > 3 ? 0 : now()
      }
      const connection = new EngineConnection("127.0.0.1", port, { pulse: { beat: () => {}, last }, stall: 50 })
      const { arrivals, outcome } = yield* Effect.promise(() => connection.exchange("/v1/completions", "{}"))
      assert.deepStrictEqual([outcome, arrivals.length, reads], ["stalled", 1, 4])
    }).pipe(Effect.scoped)
  )
})
