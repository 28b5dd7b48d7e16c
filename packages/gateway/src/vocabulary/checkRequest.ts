import { type InferencePath, nameInEngine, pathTraits } from "@seatrial/domain"
import { checkImageCount } from "../images/checkImages.ts"
import type { ImagePlace } from "../images/ImagePlaces.ts"
import { promptTooLong } from "../promptTooLong.ts"
import { Refusal, unsupportedEndpoint, unsupportedParameter } from "../refusals.ts"
import { answerLimit, outputLimitOf } from "./answerLimit.ts"
import { Checking, type Target } from "./Checking.ts"
import { endpoints } from "./endpoints.ts"
import { isMembers, type ParsedBody } from "./parseBody.ts"

/** A request that passed the checks of its endpoint and its model. */
export interface CheckedRequest {
  readonly endpoint: InferencePath
  readonly model: string
  readonly stream: boolean
  /** Whether the caller asked for the usage chunk. */
  readonly wantsUsage: boolean
  /** The number of choices in the answer. */
  readonly choices: number
  /** Tokens that each choice may have; null if the caller sets no limit. */
  readonly outputLimit: number | null
  /** The number of prompts. With several prompts, engines report usage per prompt until the stream's end. */
  readonly prompts: number
  /** Tokens of the prompts if the caller sent token IDs; null for text. */
  readonly givenTokens: number | null
  /** Whether the cached tokens in the answer do not cover all prompts. */
  readonly cachedUnknown: boolean
  /** Images that `inlineImages` must still insert into the body. */
  readonly images: ReadonlyArray<ImagePlace>
  /** Number of images inserted into the body. */
  readonly imageCount: number
  /** The body before its images were inserted; null if it has no images. */
  withoutImages: string | null
  /**
   * The body for the engine, serialized from the checked values and never from the caller's bytes. It is cleared once
   * no further engine can get the request, because it may be large and the answer may take long.
   */
  engineBody: string
}

/** Adds members that the engine needs. */
const address = (body: Record<string, unknown>, endpoint: InferencePath, model: string, { adapted, cacheSalt, requestId, wire }: Target) => {
  if (adapted) body.model = wire.adapterModel
  // Anthropic's paths require a model name.
  else if (!wire.acceptsUnnamedModel || pathTraits[endpoint].isAnthropic) body.model = nameInEngine(wire, model)
  if (endpoint === "/v1/responses") {
    body.request_id = `resp_${requestId}`
    body.store = false
  }
  if (wire.unsaltedPaths.has(endpoint)) return
  if (cacheSalt !== null) body.cache_salt = cacheSalt
  if (wire.requestIdField !== null) body[wire.requestIdField] = requestId
}

/** Members that request a stream. */
const streamed = (endpoint: InferencePath, { capabilities, wire }: Target): Record<string, unknown> => {
  if (!pathTraits[endpoint].asksForUsage) return { stream: true }
  const running = !wire.recountsUsageWithReasoning || !capabilities.supports_reasoning
  return { stream: true, stream_options: { include_usage: true, ...(running ? { continuous_usage_stats: true } : {}) } }
}

const promptsOf = ({ prompt }: Readonly<Record<string, unknown>>): number => (isSeveral(prompt) ? prompt.length : 1)

const isSeveral = (prompt: unknown): prompt is ReadonlyArray<unknown> => Array.isArray(prompt) && prompt.length > 1 && typeof prompt[0] !== "number"

const givenTokensOf = ({ prompt }: Readonly<Record<string, unknown>>): number | null => {
  if (!Array.isArray(prompt)) return null
  if (typeof prompt[0] === "number") return prompt.length
  if (!Array.isArray(prompt[0])) return null
  return prompt.reduce<number>((sum, one) => sum + (Array.isArray(one) ? one.length : 0), 0)
}

/**
 * Refuses a conversation with more messages than the context has tokens: a chat template writes at least one token for
 * each. An engine would render and tokenize all of it first, while the requests of others wait.
 */
const checkMessageCount = (endpoint: InferencePath, members: Readonly<Record<string, unknown>>, { maxModelLen }: Target): void => {
  const { isConversation, prompt } = pathTraits[endpoint]
  const conversation = members[prompt]
  const tokens = isConversation && Array.isArray(conversation) ? conversation.length : 0
  if (tokens > maxModelLen) throw promptTooLong(endpoint, { context: maxModelLen, tokens, most: maxModelLen })
}

/** Members that are not copied to the engine's body. */
const own = new Set(["model", "prompt_cache_key", "stream", "stream_options"])

/** Builds the engine's body in one object: copying the body by spreading would cost as much as checking it. */
const engineBodyOf = (endpoint: InferencePath, model: string, body: Readonly<Record<string, unknown>>, target: Target): Record<string, unknown> => {
  // With several prompts, each leaves different room for its answer.
  const sent: Record<string, unknown> = isSeveral(body.prompt) ? {} : answerLimit(body)
  address(sent, endpoint, model, target)
  for (const name of Object.keys(body)) if (!own.has(name)) sent[name] = body[name]
  return body.stream === true ? Object.assign(sent, streamed(endpoint, target)) : sent
}

const check = (endpoint: InferencePath, { members, model }: ParsedBody, target: Target): CheckedRequest => {
  const served = target.capabilities.supported_endpoints
  if (!served.includes(endpoint))
    throw unsupportedEndpoint(`The model does not support ${endpoint}${served.length === 0 ? "" : `. It supports ${served.join(", ")}`}.`, "model")
  checkMessageCount(endpoint, members, target)
  const at = new Checking(endpoint, target)
  const body = endpoints[endpoint].check(members, at)
  const { stream, stream_options } = body
  if (stream_options !== undefined && stream !== true) throw unsupportedParameter("stream_options requires `stream: true`.", "stream_options")
  const images = checkImageCount(at.images, target.capabilities.image_input)
  if (images !== null) throw images
  const prompts = promptsOf(body)
  return {
    endpoint,
    model,
    stream: stream === true,
    wantsUsage: isMembers(stream_options) && stream_options.include_usage === true,
    choices: (typeof body.n === "number" ? body.n : 1) * prompts,
    outputLimit: outputLimitOf(body),
    prompts,
    givenTokens: givenTokensOf(body),
    cachedUnknown: target.wire.streamsCachedTokensOfFirstPrompt && stream === true && prompts > 1,
    images: at.images,
    imageCount: 0,
    withoutImages: null,
    engineBody: JSON.stringify(engineBodyOf(endpoint, model, body, target))
  }
}

/** Checks a body against the fields of its endpoint and the capabilities of its model. */
export const checkRequest = (endpoint: InferencePath, parsed: ParsedBody, target: Target): CheckedRequest | Refusal => {
  try {
    return check(endpoint, parsed, target)
  } catch (cause) {
    if (cause instanceof Refusal) return cause
    throw cause
  }
}
