import { assert, describe, it } from "@effect/vitest"
import type { Runtime } from "@seatrial/domain"
import { Effect } from "effect"
import { answers, makeEngine, openStream, streamOf, wholeAnswer } from "./fakeEngine.ts"
import { chat, fetched, makeStage } from "./stage.ts"

const runtimes: ReadonlyArray<readonly [Runtime, string]> = [
  ["vllm", "adapter"],
  ["sglang", "base:adapter"],
  ["reference", "adapter"]
]

/** As an engine would say it that was asked by that name; what it generates may look like that too. */
const saidBy = (name: string, text: string) => text.replaceAll('"model":"acme/tiny"', `"model":"${name}"`)
const words = ['"model":"adapter"', '\\"model\\":\\"base:adapter\\"']

describe("a request for a model that has another name than when its engine was started", () => {
  it.live("is answered by vLLM in the name that was asked for", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) =>
        call.body.includes('"stream":true')
          ? openStream(call).end(saidBy("other/tiny", streamOf(["a"])))
          : answers(saidBy("other/tiny", wholeAnswer("a")))(call)
      )
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, runtime: "vllm" }
      for (const body of [chat, { ...chat, stream: true }]) {
        const seen = yield* fetched(address, { body })
        assert.deepStrictEqual(new Set(seen.text().match(/"model":"[^"]*"/g)), new Set(['"model":"acme/tiny"']))
      }
    })
  )
})

describe("a request for a model with an adapter", () => {
  it.live.each(runtimes)("asks %s for the adapter, by the name that it has there, and the caller reads its own", ([runtime, name]) =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) =>
        call.body.includes('"stream":true') ? openStream(call).end(saidBy(name, streamOf(words))) : answers(saidBy(name, wholeAnswer(words.join(""))))(call)
      )
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, runtime, adapted: true }
      const whole = yield* fetched(address, { body: chat })
      const streamed = yield* fetched(address, { body: { ...chat, stream: true } })
      assert.deepStrictEqual(
        engine.calls.map(({ body }) => JSON.parse(body).model),
        [name, name]
      )
      assert.strictEqual(whole.text(), wholeAnswer(words.join("")))
      const contents = (text: string) => [...text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, content]) => content)
      assert.deepStrictEqual(contents(streamed.text()), contents(streamOf(words)))
      assert.deepStrictEqual(new Set(streamed.text().match(/"model":"[^"]*"/g)), new Set(['"model":"acme/tiny"']))
    })
  )
})
