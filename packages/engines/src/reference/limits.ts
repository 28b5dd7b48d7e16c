/** What the reference engine can compute. Used by its loader and by the checks before a deployment. */
export const referenceLimits = {
  architecture: "LlamaForCausalLM",
  activation: "silu",
  /** Tokens of a context if the configuration states none. */
  assumedContext: 2_048
} as const

/** Properties of a configuration, apart from sizes, that decide whether the reference engine can compute it. */
export interface Computation {
  readonly activation: string | null
  readonly attention_bias: boolean
  readonly mlp_bias: boolean
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  /** Share of a head's values that is rotated by the position; absent: all. */
  readonly partial_rotary_factor?: number | undefined
  /** Whether some layers use a sliding window; absent: all layers see all tokens. */
  readonly windowed?: boolean | undefined
  /** Weight types that the reference engine cannot read; absent if there are none. */
  readonly types?: ReadonlyArray<string> | undefined
}

/** Why the reference engine cannot compute a model of its architecture, as the rest of a sentence; null if it can. */
export const computationProblem = ({
  activation,
  attention_bias,
  headDim,
  heads,
  kvHeads,
  mlp_bias,
  partial_rotary_factor = 1,
  types = [],
  windowed = false
}: Computation): string | null => {
  if (attention_bias || mlp_bias) return "attention_bias and mlp_bias must be false"
  if (activation !== null && activation !== referenceLimits.activation) return `hidden_act '${activation}'; only ${referenceLimits.activation} is supported`
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) return `head size ${headDim}; it must be an even whole number`
  if (partial_rotary_factor !== 1) return `partial_rotary_factor ${partial_rotary_factor}; only 1 is supported`
  if (windowed) return "layers with a sliding window, which are not supported"
  if (types.length > 0) return `weights of the type ${types.join(", ")}; only F32, BF16 and F16 are supported`
  return heads % kvHeads === 0 ? null : `${heads} attention heads are not a multiple of ${kvHeads} key-value heads`
}
