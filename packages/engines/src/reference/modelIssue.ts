import type { ModelConfig } from "@seatrial/domain"
import { computationProblem } from "./limits.ts"
import { referenceRope } from "./rope.ts"

/** Why the reference engine does not compute a model of its architecture, as a sentence; null where it does, and where an earlier version read too little to tell. */
export const referenceModelIssue = ({ computation, head_dim, native_context, num_attention_heads, num_kv_heads, rope }: ModelConfig): string | null => {
  const sizes = { heads: num_attention_heads, kvHeads: num_kv_heads, headDim: head_dim }
  const problem = computationProblem({ activation: null, attention_bias: false, mlp_bias: false, ...computation, ...sizes })
  if (problem !== null) return `reference-0.1.0 does not compute this model: ${problem}.`
  const theta = rope?.parameters.rope_theta
  const fields = rope?.parameters ?? { rope_type: computation?.rope ?? "default" }
  const found = referenceRope(fields, typeof theta === "number" ? theta : 10_000, native_context)
  return typeof found === "string" ? `reference-0.1.0 does not compute this model: ${found}.` : null
}
