import { attempt, type Candidate, type EvaluationInput, hourlyPrice, isSuccess, type Success, servesModel, settingsOf, takesSettings } from "./candidates.ts"
import type { ServingRequest, ServingSettings } from "./serving.ts"

/** A proposal for a model that does not fit with the requested settings. */
export interface Remedy {
  readonly message: string
  /** Settings that fit and can be sent unchanged; null if none do. */
  readonly serving: ServingSettings | null
}

interface Option {
  readonly success: Success
  /** Distance from the request: 0 keeps the requested context and images. */
  readonly departure: 0 | 1
  readonly words: string
}

/** Maximum number of options in a remedy. */
const namedOptions = 3

const eightBits = ({ kv_cache_dtype = "auto" }: ServingRequest) => kv_cache_dtype !== "auto"

/**
 * Tries the alternatives and keeps those that fit: an 8-bit KV cache, other host classes, both, no images if the model
 * accepts images, and a shorter context. Order: alternatives that keep context and images first, then `fits` before
 * `tight`, then by price.
 */
export const fitRemedy = (input: EvaluationInput, requested: ReadonlyArray<Candidate>, alternatives: ReadonlyArray<Candidate>): Remedy => {
  const { facts, request } = input
  const options: Array<Option> = []
  const tryWith = (candidates: ReadonlyArray<Candidate>, changed: ServingRequest, departure: 0 | 1, words: (success: Success) => string) => {
    for (const candidate of candidates) {
      if (!servesModel(facts, candidate) || !takesSettings(facts, changed, candidate)) continue
      const tried = attempt({ ...input, request: changed }, candidate)
      if (isSuccess(tried)) options.push({ success: tried, departure, words: words(tried) })
    }
  }
  const small: ServingRequest = { ...request, kv_cache_dtype: "fp8" }
  const { max_context: _, ...open } = request
  if (!eightBits(request)) tryWith(requested, small, 0, ({ hostClass }) => `with an 8-bit KV cache (fp8) on the host class ${hostClass.name}`)
  tryWith(alternatives, request, 0, ({ hostClass }) => `on the host class ${hostClass.name}`)
  if (!eightBits(request)) tryWith(alternatives, small, 0, ({ hostClass }) => `with an 8-bit KV cache (fp8) on the host class ${hostClass.name}`)
  for (const candidate of requested) {
    const { imageInput, textOnly } = candidate.engine
    const { engine_flags: flags = {} } = settingsOf(input, candidate, 0)
    if (textOnly === undefined || (imageInput?.(facts.config, flags) ?? null) === null) continue
    const text: ServingRequest = { ...request, engine_flags: { ...request.engine_flags, ...textOnly } }
    tryWith([candidate], text, 1, ({ hostClass }) => `without images (engine flags ${Object.keys(textOnly).join(", ")}) on the host class ${hostClass.name}`)
  }
  if (request.max_context !== undefined) {
    tryWith(requested, open, 1, ({ hostClass, result }) => `with a context of ${result.fit.max_context} tokens on the host class ${hostClass.name}`)
    if (!eightBits(request))
      tryWith(
        requested,
        { ...open, kv_cache_dtype: "fp8" },
        1,
        ({ hostClass, result }) => `with a context of ${result.fit.max_context} tokens and an 8-bit KV cache (fp8) on the host class ${hostClass.name}`
      )
  }
  const rank = ({ departure, success }: Option) => departure * 2 + (success.result.fit.verdict === "fits" ? 0 : 1)
  const sorted = options.toSorted((a, b) => {
    const [one, other] = [hourlyPrice(a.success.hostClass), hourlyPrice(b.success.hostClass)]
    return rank(a) - rank(b) || (one < other ? -1 : one > other ? 1 : 0)
  })
  const [best] = sorted
  if (best === undefined) {
    return { message: "Choose a smaller or a quantized model, or ask the cluster administrator for a larger host class.", serving: null }
  }
  const words = sorted.slice(0, namedOptions).map((option) => option.words)
  return {
    message: `The model fits ${words.length === 1 ? words[0] : `${words.slice(0, -1).join(", or ")}, or ${words.at(-1)}`}.`,
    serving: settingsOf({ ...input, request: best.success.request }, best.success, best.success.result.fit.max_context)
  }
}
