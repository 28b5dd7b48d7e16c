import type { Random } from "./Random.ts"

/** How the next token is chosen. `topK` 0 and `topP` 1 are off; `temperature` 0 takes the likeliest token. */
export interface SamplingSettings {
  readonly temperature: number
  /** The temperature at which `topP`, `topK` and `minP` remove tokens; absent: the same. */
  readonly cutTemperature?: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly repetitionPenalty: number
  readonly presencePenalty: number
  readonly frequencyPenalty: number
  readonly logitBias: ReadonlyMap<number, number>
}

/** A token and the natural logarithm of its probability. */
interface TokenLogprob {
  readonly id: number
  readonly logprob: number
}

/**
 * The log-probability of the chosen token and the likeliest tokens, best first. They are computed before penalties,
 * bias and temperature, as in vLLM.
 */
export interface StepLogprobs {
  readonly chosen: number
  readonly top: ReadonlyArray<TokenLogprob>
}

const greedyBelow = 1e-5

/** The index of the largest number, the first one among equals; -1 if a number is NaN or infinite. */
export const likeliest = (logits: Float32Array): number => {
  let best = -1
  let highest = Number.NEGATIVE_INFINITY
  for (let i = 0; i < logits.length; i++) {
    const logit = logits[i] ?? 0
    if (Number.isNaN(logit)) return -1
    if (logit > highest) {
      highest = logit
      best = i
    }
  }
  return best
}

/** The `count` likeliest tokens, best first (lower ID first among equals). */
const topOf = (logits: Float32Array, normaliser: number, count: number): ReadonlyArray<TokenLogprob> => {
  const top: Array<TokenLogprob> = []
  for (let id = 0; id < logits.length && count > 0; id++) {
    const logprob = (logits[id] ?? 0) - normaliser
    const last = top[top.length - 1]
    if (top.length === count && last !== undefined && logprob <= last.logprob) continue
    let at = top.length
    while (at > 0 && (top[at - 1]?.logprob ?? 0) < logprob) at--
    top.splice(at, 0, { id, logprob })
    if (top.length > count) top.pop()
  }
  return top
}

/** Log-probabilities of `chosen` and of the `count` likeliest tokens (lower ID first among equals). */
export const logprobsOf = (logits: Float32Array, count: number): { readonly of: (id: number) => number; readonly top: ReadonlyArray<TokenLogprob> } => {
  const highest = logits[likeliest(logits)] ?? 0
  let sum = 0
  for (let i = 0; i < logits.length; i++) sum += Math.exp((logits[i] ?? 0) - highest)
  const normaliser = highest + Math.log(sum)
  return { of: (id) => (logits[id] ?? Number.NEGATIVE_INFINITY) - normaliser, top: topOf(logits, normaliser, count) }
}

/** Chooses the tokens of one sequence. Holds the counts for penalties and the random numbers of the sequence. */
export class Sampler {
  private readonly settings: SamplingSettings
  private readonly random: Random
  private readonly prompt: ReadonlySet<number>
  private readonly counts = new Map<number, number>()

  constructor(settings: SamplingSettings, prompt: ReadonlyArray<number>, random: Random) {
    this.settings = settings
    this.random = random
    this.prompt = settings.repetitionPenalty === 1 ? new Set() : new Set(prompt)
  }

  /** Returns the next token, or -1 if the logits are not numbers. Changes `logits`. */
  choose(logits: Float32Array): number {
    if (likeliest(logits) < 0) return -1
    this.adjust(logits)
    const id = this.settings.temperature < greedyBelow ? likeliest(logits) : this.draw(logits)
    this.counts.set(id, (this.counts.get(id) ?? 0) + 1)
    return id
  }

  private adjust(logits: Float32Array) {
    const { frequencyPenalty, logitBias, presencePenalty, repetitionPenalty } = this.settings
    for (const [id, bias] of logitBias) logits[id] = (logits[id] ?? 0) + bias
    if (repetitionPenalty !== 1) {
      const repel = (id: number) => {
        const logit = logits[id] ?? 0
        logits[id] = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty
      }
      for (const id of this.prompt) repel(id)
      for (const id of this.counts.keys()) if (!this.prompt.has(id)) repel(id)
    }
    if (presencePenalty !== 0 || frequencyPenalty !== 0) {
      for (const [id, count] of this.counts) logits[id] = (logits[id] ?? 0) - presencePenalty - frequencyPenalty * count
    }
  }

  /** The tokens that `minP` and `topK` leave, likeliest first if `topK` or `topP` needs the order. */
  private candidates(logits: Float32Array, weight: (id: number) => number): ReadonlyArray<number> {
    const { minP, topK, topP } = this.settings
    const candidates: Array<number> = []
    for (let id = 0; id < logits.length; id++) if (weight(id) >= minP) candidates.push(id)
    if (topK > 0 || topP < 1) candidates.sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0) || a - b)
    return topK > 0 ? candidates.slice(0, topK) : candidates
  }

  private draw(logits: Float32Array): number {
    const { cutTemperature, temperature, topP } = this.settings
    const best = likeliest(logits)
    const highest = logits[best] ?? 0
    const weightAt = (degree: number) => (id: number) => Math.exp(((logits[id] ?? 0) - highest) / degree)
    const [weight, cutWeight] = [weightAt(temperature), weightAt(cutTemperature ?? temperature)]
    const sumOf = (ids: ReadonlyArray<number>, of: (id: number) => number) => {
      let total = 0
      for (const id of ids) total += of(id)
      return total
    }
    let candidates = this.candidates(logits, cutWeight)
    if (topP < 1) {
      const cutTotal = sumOf(candidates, cutWeight)
      let sum = 0
      const end = candidates.findIndex((id) => {
        sum += cutWeight(id)
        return sum >= topP * cutTotal
      })
      if (end >= 0) candidates = candidates.slice(0, end + 1)
    }
    const total = sumOf(candidates, weight)
    let left = this.random.unit() * total
    for (const id of candidates) {
      left -= weight(id)
      if (left < 0) return id
    }
    return candidates[candidates.length - 1] ?? best
  }
}
