import { type EngineLoad, type HostClass, type ModelConfig, shapeOf } from "@seatrial/domain"
import { computationProblem, referenceLimits } from "./limits.ts"
import { referenceRope } from "./rope.ts"

const problemOf = (config: ModelConfig): string | null => {
  const { computation, head_dim, native_context, num_attention_heads, num_kv_heads, rope } = config
  const sizes = { heads: num_attention_heads, kvHeads: num_kv_heads, headDim: head_dim }
  const windowed = shapeOf(config).layers.some(({ kind }) => kind !== "full")
  const problem = computationProblem({ activation: null, attention_bias: false, mlp_bias: false, ...computation, ...sizes, windowed })
  if (problem !== null) return problem
  const theta = rope?.parameters.rope_theta
  const fields = rope?.parameters ?? { rope_type: computation?.rope ?? "default" }
  const rotary = referenceRope(fields, typeof theta === "number" ? theta : 10_000, native_context)
  return typeof rotary === "string" ? rotary : null
}

/**
 * Combines the refusals of another engine and of the reference engine, which runs in its place on simulated
 * GPUs. Without this check the start would fail later.
 */
export const withStandIn =
  (version: string, issue: (config: ModelConfig, card: EngineLoad["card"]) => string | null) =>
  (config: ModelConfig, card: EngineLoad["card"] & Pick<HostClass, "simulated">): string | null => {
    const own = issue(config, card)
    if (own !== null || !card.simulated) return own
    const standsIn = `On simulated GPUs reference-0.1.0 runs in place of ${version}, and it`
    if (config.architecture !== referenceLimits.architecture) return `${standsIn} computes only ${referenceLimits.architecture}.`
    if (config.quantization !== "none") return `${standsIn} does not compute quantized checkpoints.`
    const problem = problemOf(config)
    return problem === null ? null : `${standsIn} does not compute this model: ${problem}.`
  }

/**
 * Why the reference engine cannot compute a model of its architecture, as a sentence; null if it can, or if an earlier
 * version of Seatrial read too few facts to decide.
 */
export const referenceModelIssue = (config: ModelConfig): string | null => {
  const problem = problemOf(config)
  return problem === null ? null : `reference-0.1.0 does not compute this model: ${problem}.`
}
