import type { Llama } from "../../src/Llama.ts"
import type { ModelConfig } from "../../src/ModelConfig.ts"
import type { Seams } from "../../src/Seams.ts"
import type { Mutants } from "./Mutant.ts"
import { multiplyBackwards } from "./multiplyBackwards.ts"
import { toFloat8 } from "./toFloat8.ts"

const theta = (value: number) => () => ({ config: (config: ModelConfig): ModelConfig => ({ ...config, rope: { ...config.rope, theta: value } }) })
const stretched = (factor: number) => () => ({
  config: (config: ModelConfig): ModelConfig => ({ ...config, rope: { ...config.rope, scaling: { kind: "linear", factor } } })
})

/** Rotates adjacent dimensions instead of halves, as checkpoints with another layout require. */
const rotateNeighbours = (x: Float32Array, headDim: number, cosines: Float32Array, sines: Float32Array) => {
  for (let base = 0; base < x.length; base += headDim) {
    for (let i = 0; i < headDim / 2; i++) {
      const [low, high, cosine, sine] = [x[base + 2 * i] ?? 0, x[base + 2 * i + 1] ?? 0, cosines[i] ?? 0, sines[i] ?? 0]
      x[base + 2 * i] = low * cosine - high * sine
      x[base + 2 * i + 1] = high * cosine + low * sine
    }
  }
}

const rounded = (values: Float32Array, levels: number) => {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9)
  for (let i = 0; i < values.length; i++) values[i] = (Math.round(((values[i] ?? 0) / largest) * levels) / levels) * largest
}

/** Logits are noise from this generated token on. */
const garbageAfter = (count: number) => (): Seams => ({
  computed: (logits, { promptLength, tokens }) => {
    if (tokens.length - promptLength < count) return
    for (let id = 0; id < logits.length; id++) logits[id] = ((id * 7_919 + tokens.length * 104_729) % 1_009) / 50
  }
})

/** Faults in the computation of the model. */
export const forwardMutants: Mutants = {
  rope_theta_500000: { spoils: "rotary positions have the base 500,000 instead of 10,000", seams: theta(500_000) },
  rope_theta_12000: { spoils: "rotary positions have the base 12,000 instead of 10,000", seams: theta(12_000) },
  rope_linear_4: { spoils: "positions are stretched by 4", seams: stretched(4) },
  rope_off: { spoils: "positions are not encoded", seams: stretched(1e15) },
  rope_interleaved: {
    spoils: "neighboring dimensions are paired instead of halves",
    seams: () => ({
      model: (model) => {
        model.rotate = rotateNeighbours
      }
    })
  },
  kv_heads_tiled: {
    spoils: "query heads read the KV heads in turn, not in groups",
    seams: () => ({
      model: ({ config, kvHeadOf }) => {
        for (let head = 0; head < config.heads; head++) kvHeadOf[head] = head % config.kvHeads
      }
    })
  },
  attention_unscaled: {
    spoils: "attention's scores are not divided by the root of the head size",
    seams: () => ({
      model: (model) => {
        model.attentionScale = 1
      }
    })
  },
  last_layer_skipped: { spoils: "the last layer is left out", seams: () => ({ config: (config) => ({ ...config, layers: config.layers - 1 }) }) },
  epsilon_large: { spoils: "the norms' epsilon is 0.01", seams: () => ({ config: (config) => ({ ...config, epsilon: 1e-2 }) }) },
  epsilon_huge: { spoils: "the norms' epsilon is 1", seams: () => ({ config: (config) => ({ ...config, epsilon: 1 }) }) },
  window_32: {
    spoils: "full attention sees the last 32 tokens only",
    seams: () => ({
      model: (model) => {
        model.window = 32
      }
    })
  },
  decode_position_shifted: {
    spoils: "positions are one too high while decoding",
    seams: () => ({ position: (position, promptLength) => (position < promptLength ? position : position + 1) })
  },
  decode_sees_half: {
    spoils: "decoding beyond 512 tokens does not see the first half of them",
    seams: () => {
      const models: Array<Llama> = []
      return {
        model: (model) => void models.push(model),
        position: (position, promptLength) => {
          const window = position >= promptLength && position > 512 ? Math.floor(position / 2) : Number.POSITIVE_INFINITY
          for (const model of models) model.window = window
          return position
        }
      }
    }
  },
  answer_forgotten_from_300: {
    spoils: "from the 300th generated token on, decoding sees the last 256 tokens only",
    seams: () => {
      const models: Array<Llama> = []
      return {
        model: (model) => void models.push(model),
        position: (position, promptLength) => {
          for (const model of models) model.window = position - promptLength >= 300 ? 256 : Number.POSITIVE_INFINITY
          return position
        }
      }
    }
  },
  far_positions_squeezed: {
    spoils: "positions from 256 on are an eighth as far apart",
    seams: () => ({ position: (position) => (position < 256 ? position : 256 + (position - 256) / 8) })
  },
  far_positions_fixed: {
    spoils: "all positions from 512 on, half of the context, are 512",
    seams: () => ({ position: (position) => Math.min(position, 512) })
  },
  far_positions_wrapped: {
    spoils: "positions begin again at 512, half of the context",
    seams: () => ({ position: (position) => position % 512 })
  },
  far_positions_spread: {
    spoils: "positions from 512 on, half of the context, are 8 times as far apart",
    seams: () => ({ position: (position) => (position < 512 ? position : 512 + (position - 512) * 8) })
  },
  kv_4_bit: {
    spoils: "keys and values are kept in 4 bits",
    seams: () => ({
      storedKeys: (keys, values) => {
        rounded(keys, 7)
        rounded(values, 7)
      }
    })
  },
  kv_e5m2: {
    spoils: "keys and values are kept in 8 bits, two of them for the fraction",
    seams: () => ({
      storedKeys: (keys, values) => {
        for (const stored of [keys, values]) for (const [at, value] of stored.entries()) stored[at] = toFloat8(value, 2, -14)
      }
    })
  },
  nan_from_129: {
    spoils: "prompts of 129 tokens or more give NaN",
    seams: () => ({
      computed: (logits, { promptLength }) => {
        if (promptLength >= 129) logits.fill(Number.NaN)
      }
    })
  },
  one_token_only: {
    spoils: "every token is the first of the vocabulary, as if numbers were lost",
    seams: () => ({ chosenFrom: (logits) => void logits.fill(0) })
  },
  garbage_after_100: {
    spoils: "from the 100th generated token on, logits are noise",
    seams: garbageAfter(100)
  },
  positions_fixed_from_128: {
    spoils: "all positions from the 128th generated token on are the same",
    seams: () => ({ position: (position, promptLength) => Math.min(position, promptLength + 128) })
  },
  logits_flat_from_256: {
    spoils: "logits have half their size from the 256th generated token on",
    seams: () => ({
      computed: (logits, { promptLength, tokens }) => {
        if (tokens.length - promptLength >= 256) for (let id = 0; id < logits.length; id++) logits[id] = (logits[id] ?? 0) / 2
      }
    })
  },
  garbage_after_400: { spoils: "from the 400th generated token on, logits are noise", seams: garbageAfter(400) },
  // Not a fault: another order of additions is valid.
  noise: {
    spoils: "nothing: sums are made in an order that varies with the batch",
    seams: () => {
      const batch = { running: 1, step: 0 }
      return {
        computed: (_, { running }) => {
          batch.running = running
          batch.step++
        },
        model: (model) => {
          const forwards = model.multiply
          model.multiply = (out, matrix, x) => ((batch.running + batch.step) % 2 === 0 ? multiplyBackwards : forwards)(out, matrix, x)
        }
      }
    }
  }
}
