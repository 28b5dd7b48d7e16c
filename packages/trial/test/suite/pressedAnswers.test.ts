import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import type { EngineClient } from "../../src/EngineClient.ts"
import { textPath } from "../../src/Subject.ts"
import { kvPressure, planPressure } from "../../src/suite/kvPressure.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { thresholds } from "../../src/suite/thresholds.ts"
import { subjectAt } from "./subject.ts"

const Sent = Schema.fromJsonString(
  Schema.Struct({
    prompt: Schema.Array(Schema.Int),
    max_tokens: Schema.Int,
    frequency_penalty: Schema.Finite,
    logit_bias: Schema.optionalKey(Schema.Record(Schema.String, Schema.Finite))
  })
)
type Sent = typeof Sent.Type

interface PressedEngine {
  /** By how many nats the model prefers the first token of a pair after this prompt. */
  readonly preferred?: (prompt: ReadonlyArray<number>) => number
  /** Whether requests that run with others lose the tokens that they counted, in the middle of their answers. */
  readonly forgets?: boolean
}

const tokenMillis = thresholds.usualTokenMillis

/** The greedy answer by bias and penalty. All other tokens are far less likely. */
const answerOf = ({ frequency_penalty, logit_bias, max_tokens, prompt }: Sent, { preferred = () => 0 }: PressedEngine, isForgetful: boolean) => {
  if (logit_bias === undefined) return Array.from({ length: max_tokens }, () => 0)
  const biases = Object.entries(logit_bias).map(([id, bias]) => ({ id: Number(id), bias }))
  const [first, second] = biases.toSorted((one, other) => other.bias - one.bias)
  if (first === undefined || second === undefined) return assert.fail("a bias for two tokens")
  const ahead = first.bias + preferred(prompt) - second.bias
  let lead = 0
  return Array.from({ length: max_tokens }, (_, at) => {
    if (isForgetful && at === Math.floor(max_tokens / 2)) lead = 0
    const isFirst = ahead >= frequency_penalty * lead
    lead += isFirst ? 1 : -1
    return isFirst ? first.id : second.id
  })
}

const clientOf = (engine: PressedEngine, client: EngineClient): EngineClient => {
  let active = 0
  return {
    ...client,
    get: () => Effect.succeed({ status: 200, text: "" }),
    post: Effect.fnUntraced(function* (_, body) {
      const sent = Schema.decodeUnknownSync(Sent)(body)
      active++
      yield* Effect.sleep(1)
      const isForgetful = engine.forgets === true && active > 1
      yield* Effect.sleep(sent.max_tokens * tokenMillis)
      active--
      const choice = { text: "", token_ids: answerOf(sent, engine, isForgetful), finish_reason: "length" }
      const usage = { prompt_tokens: sent.prompt.length, completion_tokens: sent.max_tokens, total_tokens: sent.prompt.length + sent.max_tokens }
      return { status: 200, text: JSON.stringify({ choices: [choice], usage }) }
    })
  }
}

/** Runs the check on an engine with these slots and this cache. Returns its measured text or its failure, and the seconds that it took. */
const press = Effect.fnUntraced(function* (engine: PressedEngine, slots = 128, tokens = 20_000) {
  const subject = yield* subjectAt("http://127.0.0.1:1")
  const capabilities: SuiteSubject["capabilities"] = {
    ...subject.capabilities,
    supported_parameters_by_endpoint: { [textPath]: ["frequency_penalty", "logit_bias"] }
  }
  const pressed: SuiteSubject = {
    ...subject,
    client: clientOf(engine, subject.client),
    capabilities,
    slots,
    parameters: 1e9,
    maxContext: 32_768,
    vocabSize: 50_000,
    cacheTokens: () => tokens
  }
  const running = yield* Effect.forkChild(
    kvPressure()
      .run(pressed)
      .pipe(Effect.catch((error) => Effect.succeed(error._tag === "Unexpected" ? error.detail : error._tag)))
  )
  let seconds = 0
  while (running.pollUnsafe() === undefined && seconds < 1_000) {
    yield* TestClock.adjust("1 second")
    seconds++
  }
  return { seconds, result: yield* Fiber.join(running) }
}, Effect.provide(FetchHttpClient.layer))

describe("answers with a frequency penalty under memory pressure", () => {
  it.effect("are right if they count all of their tokens", () => Effect.map(press({}), ({ result }) => assert.match(result, /, 23 with a frequency penalty/)))

  it.effect("are wrong if they forget earlier tokens", () =>
    Effect.map(press({ forgets: true }), ({ result }) => assert.match(result, /^\d+ of 23 answers were written as if a frequency penalty forgot/))
  )

  it.effect("are right if the model prefers a token after all prompts but the first one that was tried", () => {
    let tried: number | undefined
    const preferred = ([id]: ReadonlyArray<number>) => {
      tried ??= id
      return id === tried ? 0 : 30
    }
    return Effect.map(press({ preferred }), ({ result }) => assert.match(result, /, 23 with a frequency penalty/))
  })

  it.effect("are left out if answers are so long that they would take the time of the check", () =>
    Effect.gen(function* () {
      const [slots, tokens] = [16, 100_000]
      assert.isAbove(planPressure(tokens, slots, 32_768)?.answerLength ?? 0, 2_000)
      const { result, seconds } = yield* press({ preferred: () => 30 }, slots, tokens)
      assert.match(result, /, 0 with a frequency penalty/)
      assert.isBelow(seconds, thresholds.pressureSeconds)
    })
  )
})
