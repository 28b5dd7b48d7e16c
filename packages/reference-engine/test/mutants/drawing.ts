import { Random } from "../../src/Random.ts"
import type { SamplingSettings } from "../../src/Sampler.ts"
import { on, streamedOn, without } from "./body.ts"
import type { Mutants } from "./Mutant.ts"

/** Random numbers of which each comes twice. */
class InPairs extends Random {
  readonly #numbers: Random
  #before: number | null = null

  constructor(numbers: Random) {
    super(0)
    this.#numbers = numbers
  }

  override unit(): number {
    const before = this.#before
    if (before !== null) {
      this.#before = null
      return before
    }
    this.#before = this.#numbers.unit()
    return this.#before
  }
}

const sampling = (change: (settings: SamplingSettings) => Partial<SamplingSettings>) => () => ({
  sampling: (settings: SamplingSettings) => ({ ...settings, ...change(settings) })
})
const cooler = (value: unknown) => (typeof value === "number" ? value * 0.8 : value)
const doubled = (value: unknown) => (typeof value === "number" ? value * 2 : value)

/** Faults that change how often tokens are drawn, and leave the likeliest one as it is. */
export const drawingMutants: Mutants = {
  temperature_90: { spoils: "the temperature is applied as 0.9 of itself", seams: sampling(({ temperature }) => ({ temperature: temperature * 0.9 })) },
  temperature_twice: { spoils: "the temperature is applied twice", seams: sampling(({ temperature }) => ({ temperature: temperature * temperature })) },
  temperature_after_cuts: {
    spoils: "the temperature is applied after top_p, top_k and min_p have removed tokens",
    seams: sampling(({ temperature }) => (temperature === 0 ? {} : { cutTemperature: 1 }))
  },
  top_p_110: { spoils: "top_p is applied as 1.1 of itself", seams: sampling(({ topP }) => ({ topP: Math.min(1, topP * 1.1) })) },
  top_p_90: { spoils: "top_p is applied as 0.9 of itself", seams: sampling(({ topP }) => ({ topP: topP === 1 ? 1 : topP * 0.9 })) },
  top_k_half: { spoils: "top_k is applied as half of itself", seams: sampling(({ topK }) => ({ topK: Math.ceil(topK / 2) })) },
  min_p_half: { spoils: "min_p is applied as half of itself", seams: sampling(({ minP }) => ({ minP: minP === 1 ? 1 : minP / 2 })) },
  repetition_penalty_half: {
    spoils: "repetition_penalty is applied at half its strength",
    seams: sampling(({ repetitionPenalty }) => ({ repetitionPenalty: 1 + (repetitionPenalty - 1) / 2 }))
  },
  presence_penalty_half: {
    spoils: "presence_penalty is applied at half its strength",
    seams: sampling(({ presencePenalty }) => ({ presencePenalty: presencePenalty / 2 }))
  },
  frequency_penalty_half: {
    spoils: "frequency_penalty is applied at half its strength",
    seams: sampling(({ frequencyPenalty }) => ({ frequencyPenalty: frequencyPenalty / 2 }))
  },
  frequency_squared: {
    spoils: "frequency_penalty grows with the square of how often a token was drawn",
    seams: () => ({
      chosenFrom: (logits, { promptLength, sampling: { frequencyPenalty }, tokens }) => {
        const counts = new Map<number, number>()
        for (const id of tokens.slice(promptLength)) counts.set(id, (counts.get(id) ?? 0) + 1)
        for (const [id, count] of counts) logits.set([(logits[id] ?? 0) - frequencyPenalty * (count * count - count)], id)
      }
    })
  },
  numbers_drawn_in_pairs: {
    spoils: "every second token is drawn with the random number of the token before it",
    seams: () => ({ random: (random) => new InPairs(random) })
  },
  logit_bias_half: {
    spoils: "logit_bias is applied at half its strength",
    seams: sampling(({ logitBias }) => ({ logitBias: new Map([...logitBias].map(([id, bias]) => [id, bias / 2])) }))
  },
  chat_temperature_doubled_streamed: {
    spoils: "the temperature of streamed messages is doubled",
    seams: streamedOn("/v1/chat/completions", (fields) => ({ ...fields, temperature: doubled(fields.temperature) }))
  },
  responses_temperature_80: {
    spoils: "the temperature of /v1/responses is applied as 0.8 of itself",
    seams: on("/v1/responses", (fields) => ({ ...fields, temperature: cooler(fields.temperature) }))
  },
  responses_temperature_80_streamed: {
    spoils: "the temperature of streamed responses is applied as 0.8 of itself",
    seams: streamedOn("/v1/responses", (fields) => ({ ...fields, temperature: cooler(fields.temperature) }))
  },
  messages_temperature_80: {
    spoils: "the temperature of /v1/messages is applied as 0.8 of itself",
    seams: on("/v1/messages", (fields) => ({ ...fields, temperature: cooler(fields.temperature) }))
  },
  messages_temperature_80_streamed: {
    spoils: "the temperature of streamed answers of /v1/messages is applied as 0.8 of itself",
    seams: streamedOn("/v1/messages", (fields) => ({ ...fields, temperature: cooler(fields.temperature) }))
  },
  texts_penalties_ignored: {
    spoils: "the penalties of texts above temperature 0 are not obeyed",
    seams: on("/v1/completions", (fields) =>
      fields.temperature === 0 ? fields : without("presence_penalty", "frequency_penalty", "repetition_penalty")(fields)
    )
  }
}
