import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { answers, makeEngine, wholeAnswer } from "./fakeEngine.ts"
import { fetched, makeStage } from "./stage.ts"

it.live("a request to a public model has at most four fifths of an engine's slots; one to a private model is not limited", () =>
  Effect.gen(function* () {
    const engine = yield* makeEngine(answers(wholeAnswer("a")))
    const { address, world } = yield* makeStage([engine.url])
    const serve = (isPublic: boolean) => {
      world.route = { ...world.route, isPublic, concurrency: 2, endpoints: [{ url: engine.url, pod: isPublic ? "public" : "private" }] }
    }
    const refusals: ReadonlyArray<readonly [path: string, body: object, param: string]> = [
      ["/v1/chat/completions", { messages: [{ role: "user", content: "hi" }], n: 5 }, "n"],
      ["/v1/completions", { prompt: ["a", "b", "c"], n: 2 }, "prompt"]
    ]
    for (const [path, body, param] of refusals) {
      const ask = fetched(address, { path, body: { model: "acme/tiny", ...body } })
      serve(true)
      const calls = engine.calls.length
      const refused = yield* ask
      assert.strictEqual(refused.status(), 400)
      const { error } = JSON.parse(refused.text())
      assert.deepStrictEqual([error.code, error.param], ["invalid_parameter", param])
      assert.strictEqual(engine.calls.length, calls)
      serve(false)
      const served = yield* ask
      assert.strictEqual(served.status(), 200, served.text())
    }
    serve(true)
    assert.strictEqual((yield* fetched(address, { path: "/v1/completions", body: { model: "acme/tiny", prompt: ["a", "b"], n: 2 } })).status(), 200)
  }).pipe(Effect.scoped)
)
