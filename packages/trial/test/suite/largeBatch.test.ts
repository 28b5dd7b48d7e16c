import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Semaphore } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { largeBatch } from "../../src/suite/largeBatch.ts"
import { thresholds } from "../../src/suite/thresholds.ts"
import { subjectAt } from "./subject.ts"

const decodeSent = Schema.decodeUnknownSync(
  Schema.fromJsonString(
    Schema.Struct({
      prompt: Schema.optionalKey(Schema.String),
      max_tokens: Schema.Int,
      seed: Schema.optionalKey(Schema.Int),
      response_format: Schema.optionalKey(Schema.Unknown)
    })
  )
)

/** Runs the check on an engine that computes this many requests at once, each token in the usual time. */
const check = Effect.fnUntraced(function* (atOnce: number) {
  const subject = yield* subjectAt("http://127.0.0.1:1", { parameters: 1e9, slots: 128 })
  const slots = yield* Semaphore.make(atOnce)
  const post = (_: string, body: string) => {
    const { max_tokens, prompt = "", response_format, seed = 0 } = decodeSent(body)
    const text = response_format === undefined ? `${seed} ${prompt}` : '{"colour":"blue"}'
    const usage = { prompt_tokens: 1, completion_tokens: max_tokens, total_tokens: max_tokens + 1 }
    const logprobs = { tokens: [text], token_logprobs: [-0.1], top_logprobs: [{ [text]: -0.1 }] }
    const answer = { status: 200, text: JSON.stringify({ choices: [{ text, message: { content: text }, logprobs }], usage }) }
    return slots.withPermits(1)(Effect.as(Effect.sleep(max_tokens * thresholds.usualTokenMillis), answer))
  }
  const running = yield* Effect.forkChild(largeBatch.run({ ...subject, client: { ...subject.client, post } }))
  let seconds = 0
  while (running.pollUnsafe() === undefined && seconds < 1_000) {
    yield* TestClock.adjust("1 second")
    seconds++
  }
  return { seconds, figures: yield* Fiber.join(running) }
}, Effect.provide(FetchHttpClient.layer))

describe("the largest batch", () => {
  it.effect("has as many requests as the engine computes at once", () =>
    Effect.map(check(128), ({ figures }) => assert.strictEqual(figures, "greedy answers and seeds 8 and 128 at once, 0 different in one of two batches"))
  )

  it.effect("has as many requests as an engine answers in its time that computes one after the other", () =>
    Effect.gen(function* () {
      const { figures, seconds } = yield* check(1)
      const size = Math.floor(thresholds.largeBatchMillis / (24 * thresholds.usualTokenMillis))
      assert.strictEqual(figures, `greedy answers and seeds 8 and ${size} at once, 0 different in one of two batches`)
      assert.isBelow(seconds, largeBatch.limitSeconds(yield* subjectAt("http://127.0.0.1:1").pipe(Effect.provide(FetchHttpClient.layer))))
    })
  )
})
