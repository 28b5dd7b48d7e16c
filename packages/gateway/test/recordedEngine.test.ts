import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answers, makeEngine, streams } from "./fakeEngine.ts"
import { chat, chatStream, fetched, makeStage } from "./stage.ts"

const uids = ["01890000-0000-4000-8000-000000000000", "01890000-0000-4000-8000-000000000001"] as const
const full = answers('{"error":{"message":"full","type":"overloaded","code":503}}', 503)

describe("the record of a request names the engine", () => {
  for (const [how, body, script] of [
    ["streamed", chatStream, streams(["a"])],
    ["not streamed", chat, answers(JSON.stringify({ choices: [] }))]
  ] as const) {
    /** A gateway with those engines, and the records of a request to it. */
    const makeAsked = Effect.fnUntraced(function* (which: ReadonlyArray<0 | 1>) {
      const engines = [yield* makeEngine(full), yield* makeEngine(script)] as const
      const { address, world } = yield* makeStage([])
      world.route = { ...world.route, endpoints: which.map((index) => ({ url: engines[index].url, pod: `pod-${index}`, engine: uids[index] })) }
      return Effect.fnUntraced(function* (content: string) {
        world.recorded.length = 0
        yield* fetched(address, { body: { ...body, messages: [{ role: "user", content }] } })
        return world.recorded.map(({ _tag, row }) => [_tag, row.engine])
      })
    })

    it.live(`that got it, also if it rejects it (${how})`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* (yield* makeAsked([1]))("hi"), [
          ["Begin", uids[1]],
          ["End", uids[1]]
        ])
        assert.deepStrictEqual(yield* (yield* makeAsked([0]))("hi"), [
          ["Begin", uids[0]],
          ["Refuse", uids[0]]
        ])
      })
    )

    it.live(`that answered it after the first one had no room (${how})`, () =>
      Effect.gen(function* () {
        const ask = yield* makeAsked([0, 1])
        // The text decides which engine a request prefers.
        for (let text = 0; ; text++) {
          const [begin, end] = yield* ask(`hi ${text}`)
          assert.deepStrictEqual(end, ["End", uids[1]])
          if (begin?.[1] === uids[0]) break
          assert.isBelow(text, 100)
        }
      })
    )
  }
})
