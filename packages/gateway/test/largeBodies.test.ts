import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answers, makeEngine, wholeAnswer } from "./fakeEngine.ts"
import { chat, fetched, makeStage, outcomes } from "./stage.ts"

const content = "é".repeat(700_000)
const large = { ...chat, messages: [{ role: "user", content }], seed: 5, user: "u" }

describe("a body of more than 1 MiB", () => {
  it.live("is checked like all others, on a thread of its own, and arrives whole", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address, world } = yield* makeStage([engine.url])
      const text = JSON.stringify(large).replace('"seed":5', '"seed":9223372036854775807')
      const seen = yield* fetched(address, { body: text })
      assert.strictEqual(seen.status(), 200)
      const sent = engine.calls[0]?.body ?? ""
      assert.include(sent, '"seed":9223372036854775807')
      assert.notInclude(sent, '"user":"u"')
      assert.deepStrictEqual(JSON.parse(sent).messages, large.messages)

      const refusals: ReadonlyArray<readonly [body: string | Buffer, status: number, code: string, param: string | null]> = [
        [JSON.stringify({ ...large, n: 99 }), 400, "invalid_parameter", "n"],
        [JSON.stringify({ ...large, stream: 7 }).replace('"stream":7', '"stream":12345678901234567890'), 400, "invalid_parameter", "stream"],
        [JSON.stringify({ ...large, ["x".repeat(2_000_000)]: 1 }), 400, "unknown_parameter", "x".repeat(128)],
        [
          JSON.stringify({ ...large, messages: [...large.messages, { role: "user", content: [{ type: "text", text: "a", x: 1 }] }] }),
          400,
          "unknown_parameter",
          "messages[1].content[0].x"
        ],
        [JSON.stringify({ ...large, model: "acme/other" }), 404, "model_not_found", "model"],
        [JSON.stringify(large).slice(0, -1), 400, "invalid_body", null],
        [Buffer.from(JSON.stringify(large), "latin1"), 400, "invalid_body", null]
      ]
      for (const [body, status, code, param] of refusals) {
        const refused = yield* fetched(address, { body })
        const { error } = JSON.parse(refused.text())
        assert.deepStrictEqual([refused.status(), error.code, error.param], [status, code, param])
      }
      assert.strictEqual(engine.calls.length, 1)
      assert.strictEqual(outcomes(world).length, 2 + refusals.length)
    })
  )
})
