import { Effect, Option, Schema } from "effect"
import { type Answer, Unexpected, type Usage } from "../EngineClient.ts"
import { ask, askStreamed } from "../Subject.ts"
import type { TrialCheck } from "./Check.ts"

const decodeModels = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({ data: Schema.NonEmptyArray(Schema.Struct({ id: Schema.String, max_model_len: Schema.optionalKey(Schema.NullOr(Schema.Int)) })) })
  )
)
const decodeVersion = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

const unexpected = (detail: string) => Effect.fail(new Unexpected({ detail }))

/** The engine is the one that was asked for: name, longest context, version. */
export const engineIdentity: TrialCheck = {
  name: "engine_identity",
  run: Effect.fnUntraced(function* ({ client, engineVersion, listedName, maxContext, servedName }) {
    const listed = yield* client.get("/v1/models")
    const models = decodeModels(listed.text)
    if (listed.status !== 200 || Option.isNone(models)) return yield* unexpected(`HTTP ${listed.status} for the list of models`)
    const model = models.value.data.find(({ id }) => id === (listedName ?? servedName))
    if (model === undefined) return yield* unexpected("it serves the model under another name")
    if (model.max_model_len != null && model.max_model_len !== maxContext) return yield* unexpected(`longest context ${model.max_model_len}, not ${maxContext}`)
    const told = yield* client.get("/version")
    const version = told.status === 200 ? decodeVersion(told.text) : Option.none()
    if (Option.isSome(version) && !engineVersion.includes(version.value.version)) return yield* unexpected("it is of another version")
    return `context ${maxContext}`
  })
}

const sums = ({ completion_tokens, prompt_tokens, total_tokens }: Usage) => total_tokens === prompt_tokens + completion_tokens

/** Token counts are exact: what was asked for, whole and streamed, and sums that add up. */
export const usageExact: TrialCheck = {
  name: "usage_exact",
  run: Effect.fnUntraced(function* (subject) {
    const words = "Count upwards in words."
    const prompts = new Set<number>()
    const judge = (usage: Usage, asked: number | null) => {
      prompts.add(usage.prompt_tokens)
      if (asked !== null && usage.completion_tokens !== asked) return unexpected(`${usage.completion_tokens} completion tokens, asked for ${asked}`)
      if (!sums(usage)) return unexpected(`total ${usage.total_tokens} is not ${usage.prompt_tokens} + ${usage.completion_tokens}`)
      return usage.prompt_tokens < 1 ? unexpected("no prompt tokens") : Effect.void
    }
    const counts = [1, 2, 7, 33].filter((count) => count * 4 <= subject.maxContext)
    for (const max_tokens of counts) {
      yield* judge((yield* ask(subject, words, { max_tokens, ignore_eos: true })).usage, max_tokens)
      yield* judge((yield* askStreamed(subject, words, { max_tokens, ignore_eos: true })).usage, max_tokens)
    }
    yield* judge((yield* ask(subject, words, { max_tokens: 16 })).usage, null)
    if (prompts.size !== 1) return yield* unexpected(`the same prompt was counted in ${prompts.size} ways`)
    return `${counts.length * 2 + 1} answers`
  })
}

/** An answer ends for the reason that it says. */
export const finishReasons: TrialCheck = {
  name: "finish_reasons",
  run: Effect.fnUntraced(function* (subject) {
    for (const max_tokens of [1, 5]) {
      const { finishReason } = yield* ask(subject, "Tell a long story.", { max_tokens, ignore_eos: true })
      if (finishReason !== "length") return yield* unexpected(`${finishReason} where the limit of ${max_tokens} was reached`)
    }
    const { finishReason, usage } = yield* ask(subject, "Answer with one word.", { max_tokens: 24 })
    const limited = usage.completion_tokens >= 24
    if (finishReason !== "stop" && !(limited && finishReason === "length")) return yield* unexpected(`${finishReason} after ${usage.completion_tokens} tokens`)
    return `natural end: ${finishReason}`
  })
}

const streamPrompts = ["Say hello in three languages.", "Répète: 🚢⚓️👩‍🚀 naïve", "请用中文写一句话。"]

const same = (one: Answer, other: Answer) => one.content === other.content && one.reasoning === other.reasoning && one.finishReason === other.finishReason

/** A stream says what the whole answer says, and ends as a stream must. */
export const streamEqualsWhole: TrialCheck = {
  name: "stream_equals_whole",
  run: Effect.fnUntraced(function* (subject) {
    const asking = { max_tokens: Math.min(32, Math.floor(subject.maxContext / 4)) }
    for (const [index, words] of streamPrompts.entries()) {
      const whole = yield* ask(subject, words, asking)
      const streamed = yield* askStreamed(subject, words, asking)
      const at = `prompt ${index + 1}`
      if (!same(whole, streamed)) return yield* unexpected(`${at}: ${streamed.content.length} characters streamed, ${whole.content.length} whole`)
      if (subject.chat && streamed.roles !== 1) return yield* unexpected(`${at}: ${streamed.roles} roles`)
      if (streamed.finishReasons !== 1) return yield* unexpected(`${at}: ${streamed.finishReasons} finish reasons`)
      if (streamed.usageFrames !== 1) return yield* unexpected(`${at}: ${streamed.usageFrames} usage chunks`)
      if (!streamed.done) return yield* unexpected(`${at}: the stream does not end with one [DONE]`)
      if (streamed.usage.completion_tokens !== whole.usage.completion_tokens) return yield* unexpected(`${at}: other counts streamed than whole`)
    }
    return `${streamPrompts.length} prompts`
  })
}

const running = /^(?:vllm:num_requests_running|sglang:num_running_reqs)(?:\{[^}]*\})? ([\d.e+]+)$/gm

/** After all that, the engine still generates, and nothing runs on. */
export const stillAlive: TrialCheck = {
  name: "still_alive",
  run: Effect.fnUntraced(function* (subject) {
    const { usage } = yield* ask(subject, "Say yes.", { max_tokens: 4, ignore_eos: true })
    if (usage.completion_tokens !== 4) return yield* unexpected(`${usage.completion_tokens} of 4 tokens`)
    const metrics = yield* subject.client.get("/metrics")
    const busy = [...metrics.text.matchAll(running)].reduce((sum, [, count]) => sum + Number(count), 0)
    return busy > 0 ? yield* unexpected(`${busy} requests run on`) : "nothing runs"
  })
}
