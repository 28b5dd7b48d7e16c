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

/** The answer of an engine that was called by that name. Generated text may look the same. */
const saidBy = (name: string, text: string) => text.replaceAll('"model":"acme/tiny"', `"model":"${name}"`)
const words = ['"model":"adapter"', '\\"model\\":\\"base:adapter\\"']

describe("a request for a model that was renamed after its engine started", () => {
  it.live("is answered by vLLM with the requested name", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) =>
        call.body.includes('"stream":true')
          ? openStream(call).end(saidBy("other/tiny", streamOf(["a"])))
          : answers(saidBy("other/tiny", wholeAnswer("a")))(call)
      )
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, runtime: "vllm" }
      for (const body of [chat, { ...chat, stream: true }]) {
        const received = yield* fetched(address, { body })
        assert.deepStrictEqual(new Set(received.text().match(/"model":"[^"]*"/g)), new Set(['"model":"acme/tiny"']))
      }
    })
  )
})

describe("a request for a model with an adapter", () => {
  it.live.each(runtimes)("is sent to %s with the engine's name of the adapter, and is answered with the caller's name", ([runtime, name]) =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) =>
        call.body.includes('"stream":true') ? openStream(call).end(saidBy(name, streamOf(words))) : answers(saidBy(name, wholeAnswer(words.join(""))))(call)
      )
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, runtime, adapted: true }
      const answer = yield* fetched(address, { body: chat })
      const streamed = yield* fetched(address, { body: { ...chat, stream: true } })
      assert.deepStrictEqual(
        engine.calls.map(({ body }) => JSON.parse(body).model),
        [name, name]
      )
      assert.strictEqual(answer.text(), wholeAnswer(words.join("")))
      const contents = (text: string) => [...text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, content]) => content)
      assert.deepStrictEqual(contents(streamed.text()), contents(streamOf(words)))
      assert.deepStrictEqual(new Set(streamed.text().match(/"model":"[^"]*"/g)), new Set(['"model":"acme/tiny"']))
    })
  )
})
