import type { Mutants } from "./Mutant.ts"

/** Makes an unlikely token the likeliest one. */
const upset = (logits: Float32Array) => {
  const best = logits.indexOf(logits.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY))
  logits.set([(logits[best] ?? 0) - 20], best)
}

/** Faults in the KV cache and its sharing. */
export const cacheMutants: Mutants = {
  cached_block_of_another: {
    spoils: "blocks of the prefix cache are found by their first two tokens alone",
    seams: () => ({ blockTokens: (tokens) => tokens.slice(0, 2) })
  },
  cached_after_any: {
    spoils: "blocks of the prefix cache are found whatever stands before them",
    seams: () => ({ findsAfterAny: true })
  },
  cached_but_for_last: {
    spoils: "blocks of the prefix cache are found with any last token",
    seams: () => ({ blockTokens: (tokens) => tokens.slice(0, -1) })
  },
  salt_ignored: { spoils: "a caller may share the cache of another caller's prompts", seams: () => ({ shares: (owner) => owner.replace(/\/.*/, "") }) },
  cache_of_adapter_shared: { spoils: "base and adapter share the prefix cache", seams: () => ({ shares: (owner) => owner.replace(/^[^/]*/, "") }) },
  cached_first_token_wrong: {
    spoils: "the first token after a prompt of which something was cached is garbage",
    seams: () => ({
      computed: (logits, { cachedTokens, promptLength, tokens }) => {
        if (cachedTokens > 0 && tokens.length === promptLength) upset(logits)
      }
    })
  },
  cached_at_64_wrong: {
    spoils: "as before, if the prompt's length is 1 above a multiple of 64",
    seams: () => ({
      computed: (logits, { cachedTokens, promptLength, tokens }) => {
        if (cachedTokens > 0 && tokens.length === promptLength && promptLength % 64 === 1) upset(logits)
      }
    })
  },
  cache_never_told: {
    spoils: "cached tokens are always reported as 0",
    seams: () => ({ sending: () => (text) => [text.replace(/"cached_tokens":\d+/, '"cached_tokens":0')] })
  },
  cache_overtold: {
    spoils: "more cached tokens are reported than the prompt has",
    seams: () => ({ sending: () => (text) => [text.replace(/"cached_tokens":\d+/, '"cached_tokens":99999')] })
  },
  batch_corrupts: {
    spoils: "if 4 or more requests run at once, some of their tokens are garbage",
    seams: () => ({
      computed: (logits, { running, tokens }) => {
        if (running >= 4 && tokens.length % 9 === 0) upset(logits)
      }
    })
  },
  batch_tail_corrupts: {
    spoils: "from the 10th request of a batch on, tokens are garbage",
    seams: () => {
      const batch = new Set<object>()
      return {
        computed: (logits, { request, running }) => {
          if (running === 1) batch.clear()
          batch.add(request)
          if ([...batch].indexOf(request) >= 9) upset(logits)
        }
      }
    }
  },
  seeds_mixed_in_batch: {
    spoils: "a request that arrives while another runs is drawn with the seed of the request before it",
    seams: () => {
      const state: { active: number; last: number | null } = { active: 0, last: null }
      return {
        got: (_, body) => {
          state.active++
          return body
        },
        sending: () => (text, part) => {
          if (part === "whole") state.active--
          return [text]
        },
        seed: (seed) => {
          const before = state.last
          state.last = seed
          return state.active > 1 && seed !== null ? before : seed
        }
      }
    }
  },
  greedy_beside_drawn: {
    spoils: "a text at temperature 0 that arrives while another one is drawn is drawn too",
    seams: () => {
      const state = { active: 0, isDrawn: false }
      return {
        got: (path, body) => {
          if (path === "/v1/completions") state.active++
          return body
        },
        sending: () => (text, part) => {
          if (part === "whole" && text.includes('"text_completion"')) state.active--
          return [text]
        },
        sampling: (settings) => {
          const isBeside = state.active > 1 && state.isDrawn && settings.temperature === 0
          state.isDrawn = settings.temperature > 0
          return isBeside ? { ...settings, temperature: 1 } : settings
        }
      }
    }
  },
  schema_ignored_in_batch: {
    spoils: "a schema does not bind an answer while another one runs",
    seams: () => {
      const state = { active: 0 }
      return {
        got: (_, body) => {
          state.active++
          return body
        },
        sending: () => (text) => {
          state.active--
          return [text]
        },
        keepsMask: () => state.active < 2
      }
    }
  },
  tokens_swapped: {
    spoils: "every 20th step gives its token to another running request",
    seams: () => {
      const swap: { step: number; id: number; of: object | null } = { step: 0, id: 0, of: null }
      return {
        chosen: (id, { request, running }) => {
          swap.step++
          const { id: other, of } = swap
          if (running < 2 || swap.step % 20 > 1) return id
          swap.id = id
          swap.of = request
          return of !== null && of !== request ? other : id
        }
      }
    }
  },
  preempted_token_wrong: {
    spoils: "a preempted request continues as if its last token were another one",
    seams: () => ({
      preempted: (tokens) => {
        tokens.splice(-1, 1, ((tokens.at(-1) ?? 0) + 97) % 500)
      }
    })
  },
  preempted_wrongly: {
    spoils: "a preempted request continues with one changed token",
    seams: () => ({
      preempted: (tokens) => {
        for (let at = 2; at < tokens.length; at += 5) tokens.splice(at, 1, tokens[at - 1] ?? 0)
      }
    })
  },
  preempted_penalties_lost: {
    spoils: "a preempted request continues as if no penalty counted its earlier tokens",
    seams: () => {
      const counted = new WeakMap<object, number>()
      return {
        preempted: (tokens) => {
          counted.set(tokens, tokens.length)
        },
        chosenFrom: (logits, { promptLength, sampling, tokens }) => {
          const earlier = tokens.slice(promptLength, counted.get(tokens) ?? promptLength)
          for (const id of earlier) logits[id] = (logits[id] ?? 0) + sampling.frequencyPenalty
        }
      }
    }
  }
}
