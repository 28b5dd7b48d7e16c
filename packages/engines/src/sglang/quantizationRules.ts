import type { ModelConfig } from "@seatrial/domain"
import { packedProblem, type QuantizationRules, type Resolution } from "../quantizationIssue.ts"
import { registeredQuantizations } from "./generated/quantizations.ts"

/** Group sizes that the kernels for packed weights support. */
const packedGroups = [-1, 32, 64, 128]

/** The quantization method for an algorithm of ModelOpt (`_parse_modelopt_quant_config` in `model_config.py`). */
const modelopt = (algorithm: string): string | undefined =>
  algorithm === "MIXED_PRECISION"
    ? "modelopt_mixed"
    : algorithm.includes("FP4")
      ? "modelopt_fp4"
      : algorithm === "FP8"
        ? "modelopt_fp8"
        : algorithm === "MXFP8"
          ? "mxfp8"
          : undefined

const awq = (config: ModelConfig): Resolution | null => {
  const problem = packedProblem(config, [{ bits: 4 }, { bits: 8 }])
  return problem === null ? null : { problem }
}

const gptq = (config: ModelConfig): Resolution | null => {
  const problem = packedProblem(config, [
    { bits: 4, symmetric: true },
    { bits: 8, symmetric: true }
  ])
  if (problem !== null) return { problem }
  const size = config.quantization_scheme?.group_size
  return size === undefined || packedGroups.includes(size)
    ? null
    : { problem: `its groups have ${size} values, but there are kernels only for ${packedGroups.join(", ")}` }
}

const modelOptCheckpoint = ({ quantization_scheme: scheme }: ModelConfig): Resolution | null => {
  if (scheme?.format === undefined) return null
  const method = modelopt(scheme.format.toUpperCase())
  return method === undefined ? { problem: `the engine does not support ModelOpt's ${scheme.format}` } : { method }
}

const compressedTensors = ({ quantization, quantization_scheme: scheme, shape }: ModelConfig): Resolution => {
  const experts = shape !== undefined && shape.experts !== null
  if (scheme?.format?.startsWith("mxfp4") === true && !experts) return { problem: "the engine has no kernel for dense layers of mxfp4-pack-quantized" }
  if (experts && scheme?.bits === 8 && scheme.floating === false && scheme.activation_bits === 8)
    return { problem: "the engine has no kernel for experts with 8-bit integer weights and activations" }
  return { method: quantization, least: 80 }
}

const resolvers: ReadonlyMap<string, (config: ModelConfig) => Resolution | null> = new Map([
  ["awq", awq],
  ["gptq", gptq],
  ["modelopt", modelOptCheckpoint],
  ["compressed-tensors", compressedTensors]
])

/**
 * How SGLang 0.5.23 reads quantized checkpoints: its `override_quantization_method`s and the checks of its
 * configurations.
 */
export const sglangQuantization: QuantizationRules = {
  version: "sglang-0.5.23",
  registered: registeredQuantizations,
  refused: {
    bitsandbytes: "this method needs a Python package that is not installed, and the engine cannot split such a checkpoint over GPUs",
    gguf: "only safetensors are downloaded",
    humming: "this method is not a checkpoint format: it quantizes weights while they are loaded",
    nvfp4_online: "this method is not a checkpoint format: it quantizes weights while they are loaded",
    moe_wna16: "this method is not a checkpoint format: the engine uses it internally",
    petit_nvfp4: "this method is for GPUs of other vendors",
    modelslim: "this method is for GPUs of other vendors",
    mxfp_w4a8: "this method is for GPUs of other vendors"
  },
  alias: { gptq: "gptq_marlin" },
  resolve: (config) => resolvers.get(config.quantization)?.(config) ?? null
}
