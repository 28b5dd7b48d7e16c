import type { ModelConfig } from "@seatrial/domain"
import { packedProblem, type QuantizationRules, type Resolution } from "../quantizationIssue.ts"
import { registeredQuantizations } from "./generated/quantizations.ts"

const orProblem = (problem: string | null, method: string): Resolution => (problem === null ? { method } : { problem })

/** ModelOpt's algorithms by quantization method (`LINEAR_ALGOS` in `modelopt.py`). */
const modelopt: Readonly<Record<string, string>> = {
  FP8: "modelopt",
  FP8_PER_CHANNEL_PER_TOKEN: "modelopt",
  FP8_PB_WO: "modelopt",
  NVFP4: "modelopt_fp4",
  W4A16_NVFP4: "modelopt_fp4",
  MXFP8: "modelopt_mxfp8",
  MIXED_PRECISION: "modelopt_mixed"
}

/** `get_min_capability` of the schemes of compressed-tensors, if it is higher than the minimum of the method. */
const compressed = ({ quantization_scheme: scheme }: ModelConfig): Resolution => {
  const method = "compressed-tensors"
  const bits = scheme?.bits
  if (scheme?.format?.startsWith("mxfp4") === true) return { method, least: 80 }
  // 4-bit integers with 8-bit floating-point activations have kernels for one GPU generation only
  // (`_is_fp8_w4a8_sm90`).
  if (bits === 4 && scheme?.floating === false && scheme.activation_floating === true) return { method, least: 90, most: 90 }
  return { method, least: 75 }
}

const gptq = (config: ModelConfig): Resolution => {
  const problem = packedProblem(config, [
    { bits: 4, symmetric: true },
    { bits: 8, symmetric: true }
  ])
  const scheme = config.quantization_scheme
  const ordered = scheme?.desc_act === true && scheme.group_size !== -1
  return orProblem(problem ?? (ordered ? "its groups follow the order of activations (desc_act)" : null), "auto_gptq")
}

const modelOptCheckpoint = ({ quantization_scheme: scheme }: ModelConfig): Resolution | null => {
  const algorithm = scheme?.format?.toUpperCase()
  if (algorithm === undefined) return null
  const method = Object.hasOwn(modelopt, algorithm) ? modelopt[algorithm] : undefined
  return method === undefined ? { problem: `the engine supports ModelOpt's ${Object.keys(modelopt).join(", ")}, not ${algorithm}` } : { method }
}

const resolvers: ReadonlyMap<string, (config: ModelConfig) => Resolution | null> = new Map([
  ["awq", (config) => orProblem(packedProblem(config, [{ bits: 4 }]), "auto_awq")],
  ["gptq", gptq],
  ["modelopt", modelOptCheckpoint],
  ["modelopt_fp4", modelOptCheckpoint],
  ["modelopt_mixed", modelOptCheckpoint],
  ["modelopt_mxfp8", modelOptCheckpoint],
  ["mxfp4", ({ model_type }) => (model_type === "gpt_oss" ? { method: "gpt_oss_mxfp4" } : null)],
  ["compressed-tensors", compressed]
])

/**
 * How vLLM 0.33.0 reads quantized checkpoints: its `override_quantization_method`s and the checks of its
 * configurations.
 */
export const vllmQuantization: QuantizationRules = {
  version: "vllm-0.33.0",
  registered: registeredQuantizations,
  refused: {
    torchao: "this method needs a Python package that is not installed",
    online: "this method is not a checkpoint format: it quantizes weights while they are loaded",
    humming: "this method is not a checkpoint format: it quantizes weights while they are loaded",
    moe_wna16: "this method is not a checkpoint format: the engine uses it internally"
  },
  alias: { "auto-round": "inc" },
  resolve: (config) => resolvers.get(config.quantization)?.(config) ?? null
}
