import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answersIn, exchange } from "./rawSocket.ts"
import { layerStage, Stage } from "./stage.ts"

const cases: ReadonlyArray<readonly [what: string, sent: string, status: number, code: string]> = [
  [
    "chunked encoding in HTTP/1.0",
    "POST /v1/deployments HTTP/1.0\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    400,
    "invalid_parameter"
  ],
  ["an unknown method", "BREW /v1/deployments HTTP/1.1\r\nHost: a\r\n\r\n", 501, "method_not_allowed"],
  ["a tunnel", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 501, "method_not_allowed"]
]

layer(layerStage(), { excludeTestServices: true })("a request that the server cannot handle", (it) => {
  describe("gets an Error object, and its connection is closed", () => {
    for (const [what, sent, status, code] of cases) {
      it.effect(what, () =>
        Effect.gen(function* () {
          const { port } = yield* Stage
          // The response ends with the connection.
          const [answer, ...more] = answersIn(yield* exchange(port, sent))
          assert.strictEqual(more.length, 0)
          assert.strictEqual(answer?.status, status)
          const { error } = JSON.parse(String(answer?.text))
          assert.deepStrictEqual([error.type, error.code, error.request_id], ["invalid_request_error", code, answer?.headers["x-request-id"]])
          assert.strictEqual(answer?.headers.connection, "close")
        })
      )
    }
  })
})
