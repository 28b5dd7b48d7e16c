import type { EngineMemory } from "@seatrial/domain"

const none = { low: 0, high: 0 }

/** The reference engine has one pool for its simulated GPU. Its working memory is small in comparison. */
export const referenceMemory: EngineMemory = {
  budget: ({ card, flags }) => card.gpu_memory_bytes * (typeof flags.gpu_memory_utilization === "number" ? flags.gpu_memory_utilization : 0.92),
  blockTokens: () => 16,
  kvValueBytes: () => 4,
  stepTokens: () => 2_048,
  sequences: ({ flags }) => (typeof flags.max_num_seqs === "number" ? flags.max_num_seqs : 256),
  latentAlignment: 1,
  statesPerSequence: () => 1,
  extraLoadedBytes: 0,
  halvesFloat32: false,
  expertPadding: () => ({ low: 1, high: 1 }),
  // The float32 activations of one token, plus the float32 copy of the weights. The fit counts only the 16-bit
  // checkpoint.
  overhead: ({ config }) => {
    const activations = 4 * (8 * config.hidden_size + 2 * config.vocab_size)
    return { activation: { low: activations, high: activations + 64 * 2 ** 20 }, runtime: none, graphs: none, afterPool: none }
  }
}
