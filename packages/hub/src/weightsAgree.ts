import { type ModelConfig, shapeOf } from "@seatrial/domain"
import { Result } from "effect"
import type { Json } from "./ConfigReader.ts"
import { Unreadable } from "./failures.ts"
import type { TensorGroup } from "./TensorGroups.ts"
import { textConfig } from "./textConfig.ts"
import { isTower } from "./weightParts.ts"

const layerOf = /(?:^|\.)(?:layers|h|blocks|block)\.(\d+)\.(.+)$/
const embedding = /(?:^|\.)(?:embed_tokens|word_embeddings|wte|embed_in|tok_embeddings|embeddings)\.weight$/
const head = /(?:^|\.)(?:lm_head|embed_out)\./
const finalNorm = /(?:^|\.)model\.norm\.weight$/
/** The final norm in models without a common prefix of names, too. */
const anyFinalNorm = /^(?:.*\bmodel\.)?norm\.weight$/
const textLayer = /^(?:model\.)?layers\.(\d+)\./

const floating = new Set(["F64", "F32", "F16", "BF16"])
/** Types with one element per value, so that the shape is the logical one. */
const unpacked = new Set([...floating, "F8_E4M3", "F8_E5M2", "I8"])
/** Types that hold no weights in any format. */
const neverWeights = new Set(["BOOL", "I16", "U16", "I64", "U64"])
/** Types of quantized values, and names of their scales. */
const quantizedTypes = new Set(["F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "I8", "U8", "I32", "U32"])
const quantizedNames =
  /(?:qweight|qzeros|scales|g_idx|weight_packed|weight_scale(?:_inv|_2)?|weight_zero_point|weight_shape|input_scale|absmax|quant_map|quant_state\b.*|SCB|codes|codebooks|_blocks|_scales|trellis|suh|svh|qdata)$/
/**
 * Methods whose checkpoints always hold quantized values. Others (ModelOpt, compressed-tensors) may quantize the cache
 * only.
 */
const quantizing = new Set(["awq", "gptq", "fp8", "fbgemm_fp8", "mxfp4", "aqlm", "auto-round", "auto_round", "awq_marlin", "gptq_marlin"])

/** Architectures whose layers use Llama's module names (`vllm/model_executor/models`, each `load_weights`). */
const likeLlama: ReadonlySet<string> = new Set([
  "LlamaForCausalLM",
  "MistralForCausalLM",
  "Mistral3ForConditionalGeneration",
  "Qwen2ForCausalLM",
  "Qwen3ForCausalLM",
  "Qwen2MoeForCausalLM",
  "Qwen3MoeForCausalLM",
  "MixtralForCausalLM",
  "GemmaForCausalLM",
  "Gemma2ForCausalLM",
  "Gemma3ForCausalLM",
  "GraniteForCausalLM",
  "OlmoForCausalLM",
  "Olmo2ForCausalLM",
  "SmolLM3ForCausalLM"
])
/**
 * Those that are identical to Llama: its norms, no extra layers, and a separate output head unless the configuration
 * ties it.
 */
const asLlama: ReadonlySet<string> = new Set([
  "LlamaForCausalLM",
  "MistralForCausalLM",
  "Qwen2ForCausalLM",
  "Qwen3ForCausalLM",
  "Qwen2MoeForCausalLM",
  "Qwen3MoeForCausalLM",
  "MixtralForCausalLM"
])

/**
 * The prefixes of tensor names in some architectures. Without them, vLLM fails and SGLang skips the tensors (each
 * `load_weights`; SGLang completes the names of Qwen 3 and Gemma 3).
 */
const beginnings = ["model.layers.", "model.embed_tokens.", "model.norm."]
const withBeginnings: ReadonlySet<string> = new Set([
  "LlamaForCausalLM",
  "Qwen2ForCausalLM",
  "Qwen2MoeForCausalLM",
  "Qwen3MoeForCausalLM",
  "MixtralForCausalLM",
  "GemmaForCausalLM",
  "Gemma2ForCausalLM",
  "GraniteForCausalLM"
])

/** The modules of a Llama layer, and names that may replace several of them or the feed-forward ones. */
const attentionModules = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
const denseModules = ["mlp.gate_proj", "mlp.up_proj"]
const norms = ["input_layernorm.weight", "post_attention_layernorm.weight"]

const contradiction = (what: string) => Result.fail(new Unreadable({ reason: `The weights are not those that config.json describes: ${what}.` }))

/** Truncates a tensor's name for a message. */
const shown = (name: string) => name.slice(0, 160)

/** Expected output and input of the linear modules of a Llama-like layer; null if its layers differ. */
const linearShapes = (config: ModelConfig): ReadonlyMap<string, readonly [output: number, input: number]> | null => {
  const { hidden_size: hidden, num_attention_heads: heads } = config
  const shape = shapeOf(config)
  const [first, ...rest] = shape.layers
  if (first === undefined || first.kind === "latent" || first.kind === "state") return null
  const sizes = [first.kv_heads, first.head_size, first.head_size_v].join()
  if (rest.some((group) => group.kind === "latent" || group.kind === "state" || [group.kv_heads, group.head_size, group.head_size_v].join() !== sizes))
    return null
  const inner = shape.intermediate_size
  return new Map<string, readonly [number, number]>([
    ["self_attn.q_proj", [heads * first.head_size, hidden]],
    ["self_attn.k_proj", [first.kv_heads * first.head_size, hidden]],
    ["self_attn.v_proj", [first.kv_heads * first.head_size_v, hidden]],
    ["self_attn.o_proj", [hidden, heads * first.head_size_v]],
    ...(inner === null
      ? []
      : ([
          ["mlp.gate_proj", [inner, hidden]],
          ["mlp.up_proj", [inner, hidden]],
          ["mlp.down_proj", [hidden, inner]]
        ] as const))
  ])
}

const isShape = (shape: ReadonlyArray<number>, expected: ReadonlyArray<number>) => shape.join() === expected.join()
const written = (shape: ReadonlyArray<number>) => `[${shape.join(", ")}]`

/** The layers that have each module, by the module's name within its layer. */
const modulesOf = (names: Iterable<string>): { readonly layers: ReadonlySet<number>; readonly modules: ReadonlyMap<string, ReadonlySet<number>> } => {
  const layers = new Set<number>()
  const modules = new Map<string, Set<number>>()
  for (const name of names) {
    const match = layerOf.exec(name)
    if (match === null) continue
    const layer = Number(match[1])
    layers.add(layer)
    const module = (match[2] ?? "").split(".").slice(0, 2).join(".")
    modules.set(module, (modules.get(module) ?? new Set()).add(layer))
  }
  return { layers, modules }
}

/** The first missing module of a Llama-like layer, in words; null if none is missing. */
const lacking = (modules: ReadonlyMap<string, ReadonlySet<number>>, layers: number, alike: boolean): string | null => {
  const has = (layer: number, module: string) => modules.get(module)?.has(layer) === true
  for (let layer = 0; layer < layers; layer++) {
    const fused = has(layer, "self_attn.qkv_proj")
    const needed = [...(alike ? norms : []), ...(fused ? [] : attentionModules), "self_attn.o_proj"]
    if (has(layer, "mlp.down_proj")) needed.push(...(has(layer, "mlp.gate_up_proj") ? [] : denseModules))
    else if (!has(layer, "mlp.experts") && !has(layer, "block_sparse_moe.experts")) needed.push("mlp.down_proj")
    const missing = needed.find((module) => !has(layer, module))
    if (missing !== undefined) return `layer ${layer} has no ${missing.replace(/\.weight$/, "")}`
  }
  return null
}

/**
 * A tensor of a layer that the configuration does not have. Engines would fail, or skip it and produce garbage.
 * Undefined if the extra layers may be for multi-token prediction.
 */
const beyond = (config: ModelConfig, raw: Json, groups: ReadonlyArray<TensorGroup>): TensorGroup | undefined =>
  Object.keys(textConfig(raw).text).some((key) => /nextn|mtp|predict_layers/.test(key))
    ? undefined
    : groups.find(({ name }) => Number(textLayer.exec(name)?.[1] ?? 0) >= config.num_layers)

/** Why the tensors' types contradict the quantization, or null. */
const typeProblem = (config: ModelConfig, groups: ReadonlyArray<TensorGroup>, fromHeaders: ReadonlyArray<TensorGroup>): string | null => {
  const odd = fromHeaders.find(
    ({ dtype, name, shape }) =>
      name.endsWith(".weight") &&
      shape.length >= 1 &&
      (neverWeights.has(dtype) || (config.quantization === "none" && !floating.has(dtype) && !/^F[84]/.test(dtype)))
  )
  if (odd !== undefined)
    return `${shown(odd.name)} is of the type ${odd.dtype}, and ${config.quantization === "none" ? "it states no quantization" : "no format keeps weights so"}`
  if (!quantizing.has(config.quantization)) return null
  const quantized = groups.some(({ name }) => quantizedNames.test(name)) || fromHeaders.some(({ dtype }) => quantizedTypes.has(dtype))
  return quantized ? null : `it states the quantization ${config.quantization}, and no tensor is quantized`
}

/**
 * Why embeddings or the output head contradict the configuration, or null. Both engines require the configured number
 * of rows in known layouts.
 */
const vocabularyProblem = (config: ModelConfig, raw: Json, fromHeaders: ReadonlyArray<TensorGroup>, known: boolean): string | null => {
  const { hidden_size: hidden, vocab_size: rows } = config
  const projected = ["word_embed_proj_dim", "embedding_size", "emb_dim"].some((key) => raw[key] !== undefined)
  const problemOf = ({ name, shape }: TensorGroup): string | null => {
    const [rowCount = 0, width = 0] = shape
    return (projected || width === hidden) && (known ? rowCount === rows : rowCount >= rows)
      ? null
      : `${shown(name)} is ${written(shape)}, and vocab_size and hidden_size are ${written([rows, hidden])}`
  }
  const plain = fromHeaders.filter(({ dtype, shape }) => shape.length === 2 && unpacked.has(dtype))
  // Parts for speech output have their own embeddings in addition to the text's.
  const embeddings = plain.filter(({ name }) => embedding.test(name)).map(problemOf)
  if (embeddings.length > 0 && !embeddings.includes(null)) return embeddings[0] ?? null
  const heads = known ? plain.filter(({ name }) => head.test(name) && name.endsWith(".weight")) : []
  return heads.map(problemOf).find((problem) => problem !== null) ?? null
}

/**
 * Compares a repository's tensors with its configuration, because an engine would fail only after the download.
 * `groups`: all, by name. `seen`: those whose type and shape come from a header. Unknown layouts are checked for common
 * properties: layers, vocabulary, width and types.
 */
export const weightsAgree = (
  config: ModelConfig,
  raw: Json,
  groups: ReadonlyArray<TensorGroup>,
  fromHeaders: ReadonlyArray<TensorGroup>
): Result.Result<void, Unreadable> => {
  const [all, knownTensors] = [groups, fromHeaders].map((listed) => listed.filter(({ name }) => !isTower(name)))
  if (all === undefined || knownTensors === undefined) return Result.succeed(undefined)
  const types = typeProblem(config, all, knownTensors)
  if (types !== null) return contradiction(types)
  const known = likeLlama.has(config.architecture)
  const vocabulary = vocabularyProblem(config, raw, knownTensors, known)
  if (vocabulary !== null) return contradiction(vocabulary)

  const { layers, modules } = modulesOf(all.map(({ name }) => name))
  const described = shapeOf(config).layers.reduce((sum, group) => sum + group.layers, 0)
  // A layer without a cache may be missing completely.
  if (layers.size > 0 && described >= config.num_layers) {
    for (let layer = 0; layer < config.num_layers; layer++)
      if (!layers.has(layer)) return contradiction(`num_hidden_layers is ${config.num_layers}, and there is no tensor of layer ${layer}`)
  }
  if (!known || layers.size === 0) return Result.succeed(undefined)
  const alike = asLlama.has(config.architecture)
  const missing = lacking(modules, config.num_layers, alike)
  if (missing !== null) return contradiction(missing)
  const surplus = alike ? beyond(config, raw, all) : undefined
  if (surplus !== undefined) return contradiction(`num_hidden_layers is ${config.num_layers}, and there is ${shown(surplus.name)}`)
  if (alike && !all.some(({ name }) => anyFinalNorm.test(name))) return contradiction("there is no model.norm")
  if (!all.some(({ name }) => embedding.test(name))) return contradiction("there are no embeddings")
  if (alike && config.shape?.tied_embeddings === false && !all.some(({ name }) => head.test(name)))
    return contradiction("there is no output head, and tie_word_embeddings is not set")
  const unnamed = withBeginnings.has(config.architecture) ? beginnings.find((part) => !all.some(({ name }) => name.startsWith(part))) : undefined
  if (unnamed !== undefined) return contradiction(`no tensor's name begins with ${unnamed}, as those of ${config.architecture} do`)
  const shapes = linearShapes(config)
  for (const { dtype, name, shape } of knownTensors) {
    if (finalNorm.test(name) && !isShape(shape, [config.hidden_size]))
      return contradiction(`${shown(name)} is ${written(shape)}, and hidden_size is ${config.hidden_size}`)
    const match = layerOf.exec(name)
    if (match === null || Number(match[1]) >= config.num_layers) continue
    const rest = match[2] ?? ""
    if ((rest === "input_layernorm.weight" || rest === "post_attention_layernorm.weight") && !isShape(shape, [config.hidden_size]))
      return contradiction(`${shown(name)} is ${written(shape)}, and hidden_size is ${config.hidden_size}`)
    const expected = rest.endsWith(".weight") ? shapes?.get(rest.slice(0, -".weight".length)) : undefined
    if (expected === undefined || shape.length !== 2 || !unpacked.has(dtype)) continue
    if (!isShape(shape, expected)) return contradiction(`${shown(name)} is ${written(shape)}, and its sizes ask for ${written(expected)}`)
  }
  return Result.succeed(undefined)
}
