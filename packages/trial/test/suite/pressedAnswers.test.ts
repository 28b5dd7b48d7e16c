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
    logprobs: Schema.optionalKey(Schema.Int),
    prompt_logprobs: Schema.optionalKey(Schema.Int),
    logit_bias: Schema.optionalKey(Schema.Record(Schema.String, Schema.Finite))
  })
)
type Sent = typeof Sent.Type

interface PressedEngine {
  /** By how many nats the model prefers the first token of a pair after this prompt. */
  readonly preferred?: (prompt: ReadonlyArray<number>) => number
  /** Whether requests that run with others lose the tokens that they counted, in the middle of their answers. */
  readonly forgets?: boolean
  /** How many preemptions the engine counts after requests ran together; null: it reports no count. */
  readonly preemptions?: number | null
  /** How many log-probabilities, or tokens, answers lack that were written together with others. */
  readonly lostLogprobs?: number
  readonly lostTokens?: number
  /** Whether texts have neither log-probabilities nor penalties. */
  readonly reportsNothing?: boolean
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

const logprob = -1

const clientOf = (engine: PressedEngine, client: EngineClient): EngineClient => {
  let active = 0
  let wasFull = false
  const { lostLogprobs = 0, lostTokens = 0, preemptions = 3, reportsNothing = false } = engine
  return {
    ...client,
    get: () => Effect.sync(() => ({ status: 200, text: preemptions === null ? "" : `vllm:num_preemptions_total ${wasFull ? preemptions : 0}` })),
    post: Effect.fnUntraced(function* (_, body) {
      const sent = Schema.decodeUnknownSync(Sent)(body)
      active++
      yield* Effect.sleep(1)
      const isPressed = active > 1
      wasFull ||= isPressed
      yield* Effect.sleep(sent.max_tokens * tokenMillis)
      active--
      const ids = answerOf(sent, engine, engine.forgets === true && isPressed).slice(isPressed ? lostTokens : 0)
      const token_logprobs = ids.slice(isPressed ? lostLogprobs : 0).map(() => logprob)
      const choice = {
        text: "",
        token_ids: ids,
        finish_reason: "length",
        logprobs: sent.logprobs === undefined || reportsNothing ? null : { token_logprobs },
        prompt_logprobs: sent.prompt_logprobs === undefined ? null : sent.prompt.map((id, at) => (at === 0 ? null : { [id]: { logprob } }))
      }
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
    supported_parameters_by_endpoint: { [textPath]: engine.reportsNothing === true ? [] : ["frequency_penalty", "logit_bias"] }
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
      .pipe(
        Effect.catchTags({
          Unexpected: ({ detail }) => Effect.succeed(detail),
          NotApplicable: ({ reason }) => Effect.succeed(`not applicable: ${reason}`)
        })
      )
  )
  let seconds = 0
  while (running.pollUnsafe() === undefined && seconds < 1_000) {
    yield* TestClock.adjust("1 second")
    seconds++
  }
  return { seconds, result: yield* Fiber.join(running) }
}, Effect.provide(FetchHttpClient.layer))

describe("answers under memory pressure", () => {
  it.effect("are right if some of them were preempted and read again", () =>
    Effect.map(press({}), ({ result }) => assert.match(result, /^46 requests for 20000 tokens, 3 preempted, .* 4 answers read again$/))
  )

  it.effect("say nothing about preempted requests if the engine counted none, or does not count them", () =>
    Effect.gen(function* () {
      for (const preemptions of [0, null]) assert.strictEqual((yield* press({ preemptions })).result, "not applicable: no preemption was counted")
    })
  )

  it.effect("say nothing if the engine reports nothing to compare", () =>
    Effect.map(press({ reportsNothing: true }), ({ result }) => assert.strictEqual(result, "not applicable: no log-probabilities with token ids"))
  )

  it.effect("are wrong if they lack tokens or log-probabilities, even if no preemption was counted", () =>
    Effect.gen(function* () {
      for (const lost of [{ lostTokens: 1 }, { lostLogprobs: 1 }, { lostLogprobs: 1, preemptions: 0 }]) {
        assert.match((yield* press(lost)).result, /^\d+ of 46 answers have another length than requested$/)
      }
    })
  )
})

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
