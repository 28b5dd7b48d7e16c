import { AnswerText, type Receivers, type TextRules } from "./AnswerText.ts"
import type { Arguments } from "./Arguments.ts"
import { begin, type Steps } from "./grammar/Grammar.ts"
import { anyObject } from "./grammar/json.ts"
import { schemaGrammar, UnsupportedSchema } from "./grammar/jsonSchema.ts"
import { afterThought, makeTokenMask } from "./grammar/TokenMask.ts"
import type { Llama } from "./Llama.ts"
import type { ModelConfig, SamplingDefaults } from "./ModelConfig.ts"
import { ApiError, badRequest, type SamplingBody } from "./Protocol.ts"
import type { SamplingSettings } from "./Sampler.ts"
import type { Scheduler, Ticket } from "./Scheduler.ts"
import type { Seams } from "./Seams.ts"
import { ThoughtFollower, type ThoughtMarks, type ThoughtStart } from "./ThoughtReader.ts"
import type { Vocabulary } from "./Vocabulary.ts"

/** The parts that generate answers. */
export interface Engine {
  readonly settings: Arguments
  /** The name of the fault that a test injected; null in production. */
  readonly fault: string | null
  readonly seams: Seams
  readonly config: ModelConfig
  readonly defaults: SamplingDefaults
  readonly vocabulary: Vocabulary
  readonly scheduler: Scheduler
  /** The model with its adapter; null without an adapter. */
  readonly adapted: Llama | null
  /** Maximum length of prompt and answer together, in tokens. */
  readonly maxModelLen: number
  /** The marks around reasoning; null if it is not separated from answers. */
  readonly thoughtMarks: ThoughtMarks | null
}

export interface Plan {
  /** Whether the adapter is applied. */
  readonly adapted: boolean
  readonly prompt: ReadonlyArray<number>
  /** A grammar that overrides `response_format`; null: `response_format` decides. */
  readonly grammar: Steps | null
  /** How separated reasoning begins. The grammar does not apply to it. Null if there is none. */
  readonly thought: ThoughtStart | null
  readonly topLogprobs: number | null
  readonly defaultMaxTokens: number | null
  readonly requestedMaxTokens: number | null
}

const logitBiasOf = (body: SamplingBody, engine: Engine): ReadonlyMap<number, number> => {
  const logitBias = new Map<number, number>()
  for (const [key, bias] of Object.entries(body.logit_bias ?? {})) {
    const id = /^\d{1,9}$/.test(key) ? Number(key) : -1
    if (id < 0 || id >= engine.vocabulary.size) throw badRequest(`token_id ${key} in logit_bias contains out-of-vocab token id`, "logit_bias")
    logitBias.set(id, Math.max(-100, Math.min(100, bias)))
  }
  return logitBias
}

const settingsOf = (body: SamplingBody, engine: Engine): SamplingSettings => {
  const logitBias = logitBiasOf(body, engine)
  return {
    temperature: body.temperature ?? engine.defaults.temperature,
    topP: body.top_p ?? engine.defaults.topP,
    topK: Math.max(0, body.top_k ?? engine.defaults.topK),
    minP: body.min_p ?? engine.defaults.minP,
    repetitionPenalty: body.repetition_penalty ?? engine.defaults.repetitionPenalty,
    presencePenalty: body.presence_penalty ?? 0,
    frequencyPenalty: body.frequency_penalty ?? 0,
    logitBias
  }
}

const refuseUnsupported = (body: SamplingBody, plan: Plan, engine: Engine) => {
  const { maxLogprobs } = engine.settings
  if ((body.n ?? 1) > 1 && body.temperature === 0) throw badRequest(`n must be 1 when using greedy sampling, got ${body.n}.`, "n")
  if (body.stream_options && body.stream !== true) throw badRequest("Stream options can only be defined when `stream=True`.", "stream_options")
  const requested = Math.max(plan.topLogprobs ?? 0, body.prompt_logprobs ?? 0)
  if (requested > maxLogprobs) {
    throw badRequest(`Requested sample logprobs of ${requested}, which is greater than max allowed: ${maxLogprobs}`, "logprobs")
  }
  if (body.prompt_logprobs != null && body.stream === true) throw badRequest("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs")
}

/** Runs `read` and turns an unsupported schema into a 400 for the field `param`. */
export const understood = <A>(param: string, read: () => A): A => {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof UnsupportedSchema) throw badRequest(`The JSON schema contains features that are not supported: ${cause.message}`, param)
    throw cause
  }
}

const formatOf = ({ response_format }: SamplingBody): Steps | null => {
  if (response_format == null || response_format.type === "text") return null
  if (!("json_schema" in response_format)) return begin(anyObject)
  const { schema } = response_format.json_schema
  return understood("response_format", () => begin(schemaGrammar(schema)))
}

/** vLLM's refusal for prompts and answers that exceed the context. */
const contextExceeded = (limit: number, answerTokens: number, prompt: string, total: string) =>
  badRequest(
    `This model's maximum context length is ${limit} tokens. However, you requested ${answerTokens} output tokens and your prompt contains ${prompt} input tokens, for a total of ${total} tokens. Please reduce the length of the input prompt or the number of requested output tokens.`,
    "input_tokens"
  )

/** Encodes a text prompt. Throws `ApiError` 400 without encoding if the text is certainly too long. */
export const encodePrompt = (engine: Engine, text: string, addSpecialTokens: boolean): ReadonlyArray<number> => {
  if (engine.seams.limit?.cuts !== true && engine.vocabulary.surelyExceeds(text, engine.maxModelLen)) {
    throw contextExceeded(engine.maxModelLen, 1, `at least ${engine.maxModelLen + 1}`, `at least ${engine.maxModelLen + 2}`)
  }
  return engine.vocabulary.encode(text, addSpecialTokens)
}

const maxTokensOf = (engine: Engine, plan: Plan): number => {
  const length = plan.prompt.length
  if (length === 0) throw badRequest("The decoder prompt cannot be empty", "prompt")
  const room = engine.maxModelLen + (engine.seams.limit?.slack ?? 0) - length
  const most = Math.max(room, 1)
  const { cuts, unfilled, unprompted } = engine.settings.edge
  const requested = cuts && plan.requestedMaxTokens !== null ? Math.min(plan.requestedMaxTokens, most) : plan.requestedMaxTokens
  const answerTokens = requested ?? Math.min(plan.defaultMaxTokens ?? room, most)
  if (answerTokens > room || room < 1)
    throw contextExceeded(engine.maxModelLen, Math.max(answerTokens, 1), String(length), String(length + Math.max(answerTokens, 1)))
  if (length > engine.maxModelLen - unprompted) {
    const limit = engine.maxModelLen - unprompted + 1
    throw badRequest(
      `Input length (${length} tokens) exceeds the maximum allowed length (${limit} tokens). Use a shorter input or enable --allow-auto-truncate.`,
      "input_tokens"
    )
  }
  const outside = plan.prompt.find((id) => id >= engine.vocabulary.size)
  if (outside !== undefined) throw badRequest(`Token id ${outside} is out of vocabulary`, "prompt")
  return Math.min(answerTokens, room - unfilled)
}

/** Drops the beginning of a prompt that is too long. */
const shortened = ({ maxModelLen }: Engine, { prompt, requestedMaxTokens }: Plan): ReadonlyArray<number> =>
  prompt.slice(Math.max(0, prompt.length + (requestedMaxTokens ?? 1) - maxModelLen))

const maskOf = ({ config, seams, thoughtMarks, vocabulary }: Engine, { stream }: SamplingBody, { thought }: Plan, grammar: Steps | null) => {
  if (grammar === null || seams.keepsMask?.(stream === true) === false) return null
  const mask = makeTokenMask(grammar, vocabulary, config.endTokens)
  if (thought !== null && seams.bindsAfterThought === false) return null
  return thought === null || thoughtMarks === null ? mask : afterThought(mask, new ThoughtFollower(thoughtMarks, thought), thoughtMarks)
}

/** The random numbers and settings of the sampler. */
const samplingOf = (engine: Engine, body: SamplingBody) => {
  const { seams } = engine
  const sampling = settingsOf(body, engine)
  const seed = body.seed ?? null
  return { sampling: seams.sampling?.(sampling) ?? sampling, seed: seams.seed === undefined ? seed : seams.seed(seed) }
}

/**
 * The owner whose prefixes the request shares; null: none. Scored prompt tokens must be computed, so they cannot come
 * from the cache.
 */
const sharesOf = ({ seams, settings }: Engine, body: SamplingBody, { adapted }: Plan): string | null => {
  if (!settings.prefixCaching || body.prompt_logprobs != null) return null
  const owner = `${adapted ? "adapter" : "base"}/${body.cache_salt ?? ""}`
  return seams.shares?.(owner) ?? owner
}

const noTokens: ReadonlySet<number> = new Set()

const textRulesOf = ({ config, thoughtMarks }: Engine, body: SamplingBody, plan: Plan, maxTokens: number): TextRules => ({
  endTokens: body.ignore_eos === true ? noTokens : config.endTokens,
  stopTokens: body.stop_token_ids ?? [],
  stopStrings: typeof body.stop === "string" ? [body.stop] : (body.stop ?? []),
  maxTokens,
  thought: thoughtMarks === null || plan.thought === null ? null : new ThoughtFollower(thoughtMarks, plan.thought)
})

/**
 * Starts one answer. Throws `ApiError` if the request cannot run: 400 for its content, 503 if the queue is full.
 */
export const generate = (engine: Engine, body: SamplingBody, plan: Plan, onPiece: Receivers["onPiece"], onEnding: Receivers["onEnding"]): Ticket => {
  refuseUnsupported(body, plan, engine)
  const prompt = engine.seams.limit?.cuts === true ? shortened(engine, plan) : plan.prompt
  const maxTokens = maxTokensOf(engine, { ...plan, prompt })
  const grammar = plan.grammar ?? formatOf(body)
  const sampled = samplingOf(engine, body)
  const rules = textRulesOf(engine, body, plan, maxTokens)
  const { onAdmitted, onEnd, onPromptToken, onToken } = new AnswerText(engine.seams, engine.vocabulary, rules, { onPiece, onEnding })
  const ticket = engine.scheduler.submit({
    model: plan.adapted ? engine.adapted : null,
    prompt,
    maxTokens,
    shares: sharesOf(engine, body, plan),
    mask: maskOf(engine, body, plan, grammar),
    ...sampled,
    stopTokens: new Set([...rules.endTokens, ...rules.stopTokens]),
    topLogprobs: plan.topLogprobs,
    promptLogprobs: body.prompt_logprobs ?? null,
    onAdmitted,
    onPromptToken,
    onToken,
    onEnd
  })
  if (ticket === "full") throw new ApiError(503, "ServiceUnavailableError", "The server is overloaded: too many requests are waiting. Try again later.")
  return ticket
}
