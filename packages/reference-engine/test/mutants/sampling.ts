import type { StepPlace } from "../../src/Seams.ts"
import type { Mutants } from "./Mutant.ts"

const bestOf = (logits: Float32Array) => logits.indexOf(logits.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY))

const skipping = (every: number) => () => {
  const count = { steps: 0 }
  return {
    chosenFrom: (logits: Float32Array, _: StepPlace) => {
      if (++count.steps % every === 0) logits.set([Number.NEGATIVE_INFINITY], bestOf(logits))
    }
  }
}

/** Faults in sampling and log-probabilities. */
export const samplingMutants: Mutants = {
  best_skipped_200: { spoils: "every 200th step loses the likeliest token", seams: skipping(200) },
  best_skipped_20: { spoils: "every 20th step loses the likeliest token", seams: skipping(20) },
  unreported_rounded: {
    spoils: "logits of requests without log-probabilities are rounded to multiples of 4",
    seams: () => ({
      computed: (logits, { reports }) => {
        if (!reports) logits.set(logits.map((logit) => Math.round(logit / 4) * 4))
      }
    })
  },
  penalty_kept: {
    spoils: "the repetition penalty is 1.1 for every request",
    seams: () => ({ sampling: (settings) => ({ ...settings, repetitionPenalty: 1.1 }) })
  },
  seed_ignored: {
    spoils: "a request's seed is not obeyed",
    seams: () => {
      const count = { requests: 0 }
      return { seed: () => ++count.requests * 7_919 }
    }
  },
  seed_always_same: { spoils: "all requests are drawn with the same seed", seams: () => ({ seed: () => 1 }) },
  greedy_is_drawn: {
    spoils: "temperature 0 is drawn, with another seed each time",
    seams: () => {
      const count = { requests: 0 }
      return { seed: () => ++count.requests, sampling: (settings) => ({ ...settings, temperature: settings.temperature === 0 ? 1 : settings.temperature }) }
    }
  },
  temperature_ignored: { spoils: "the temperature is always 0", seams: () => ({ sampling: (settings) => ({ ...settings, temperature: 0 }) }) },
  top_k_ignored: { spoils: "top_k is not obeyed", seams: () => ({ sampling: (settings) => ({ ...settings, topK: 0 }) }) },
  top_p_ignored: { spoils: "top_p is not obeyed", seams: () => ({ sampling: (settings) => ({ ...settings, topP: 1 }) }) },
  min_p_ignored: { spoils: "min_p is not obeyed", seams: () => ({ sampling: (settings) => ({ ...settings, minP: 0 }) }) },
  repetition_penalty_ignored: {
    spoils: "repetition_penalty is not obeyed",
    seams: () => ({ sampling: (settings) => ({ ...settings, repetitionPenalty: 1 }) })
  },
  presence_penalty_ignored: { spoils: "presence_penalty is not obeyed", seams: () => ({ sampling: (settings) => ({ ...settings, presencePenalty: 0 }) }) },
  frequency_penalty_ignored: {
    spoils: "frequency_penalty is not obeyed",
    seams: () => ({ sampling: (settings) => ({ ...settings, frequencyPenalty: 0 }) })
  },
  logit_bias_ignored: { spoils: "logit_bias is not obeyed", seams: () => ({ sampling: (settings) => ({ ...settings, logitBias: new Map() }) }) },
  positive_bias_ignored: {
    spoils: "only a logit_bias below zero is obeyed",
    seams: () => ({ sampling: (settings) => ({ ...settings, logitBias: new Map([...settings.logitBias].filter(([, bias]) => bias < 0)) }) })
  },
  temperature_fixed: {
    spoils: "every temperature above 0 is used as 1",
    seams: () => ({ sampling: (settings) => ({ ...settings, temperature: settings.temperature === 0 ? 0 : 1 }) })
  },
  logprobs_raised: {
    spoils: "log-probabilities are all 0.5 too high",
    seams: () => ({
      reported: ({ chosen, top }) => ({ chosen: chosen + 0.5, top: top.map(({ id, logprob }) => ({ id, logprob: logprob + 0.5 })) })
    })
  },
  logprobs_unsorted: {
    spoils: "the likeliest tokens are listed worst first",
    seams: () => ({ reported: ({ chosen, top }) => ({ chosen, top: [...top].reverse() }) })
  },
  logprobs_of_another: {
    spoils: "the chosen token's log-probability is the second best's",
    seams: () => ({ reported: ({ chosen, top }) => ({ chosen: top[1]?.logprob ?? chosen - 1, top }) })
  }
}
