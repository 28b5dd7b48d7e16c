import { type ModelConfig, shapeOf } from "@seatrial/domain"
import { Result } from "effect"
import type { Json } from "./ConfigReader.ts"
import { Unreadable } from "./failures.ts"
import { asLlama, beginnings, likeLlama, withBeginnings } from "./llamaArchitectures.ts"
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

/** The modules of a Llama layer, and names that may replace several of them or the feed-forward ones. */
const attentionModules = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
const denseModules = ["mlp.gate_proj", "mlp.up_proj"]
const norms = ["input_layernorm.weight", "post_attention_layernorm.weight"]

const contradiction = (what: string) => Result.fail(new Unreadable({ reason: `The weights do not match config.json: ${what}.` }))

/** Truncates a tensor's name for a message. */
const shortName = (name: string) => name.slice(0, 160)

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
    return `${shortName(odd.name)} has the type ${odd.dtype}, but ${config.quantization === "none" ? "config.json states no quantization" : "no format stores weights of this type"}`
  if (!quantizing.has(config.quantization)) return null
  const quantized = groups.some(({ name }) => quantizedNames.test(name)) || fromHeaders.some(({ dtype }) => quantizedTypes.has(dtype))
  return quantized ? null : `config.json states the quantization ${config.quantization}, but no tensor is quantized`
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
      : `${shortName(name)} is ${written(shape)}, and vocab_size and hidden_size are ${written([rows, hidden])}`
  }
  const plain = fromHeaders.filter(({ dtype, shape }) => shape.length === 2 && unpacked.has(dtype))
  // Parts for speech output have their own embeddings in addition to the text's.
  const embeddings = plain.filter(({ name }) => embedding.test(name)).map(problemOf)
  if (embeddings.length > 0 && !embeddings.includes(null)) return embeddings[0] ?? null
  const heads = known ? plain.filter(({ name }) => head.test(name) && name.endsWith(".weight")) : []
  return heads.map(problemOf).find((problem) => problem !== null) ?? null
}

/** What the tensors of a repository are compared with. */
interface Comparison {
  readonly config: ModelConfig
  readonly raw: Json
  /** All tensors of the text model. */
  readonly all: ReadonlyArray<TensorGroup>
  /** Those whose type and shape come from a header. */
  readonly fromHeaders: ReadonlyArray<TensorGroup>
  /** Whether the layers use Llama's module names. */
  readonly isKnown: boolean
  /** Whether the architecture is identical to Llama. */
  readonly isLlama: boolean
  readonly layers: ReadonlySet<number>
  readonly modules: ReadonlyMap<string, ReadonlySet<number>>
}

/** One comparison: the contradiction in words, or null. */
type Step = (comparison: Comparison) => string | null

const missingLayer: Step = ({ config, layers }) => {
  const described = shapeOf(config).layers.reduce((sum, group) => sum + group.layers, 0)
  // A layer without a cache may be missing completely.
  if (layers.size === 0 || described < config.num_layers) return null
  for (let layer = 0; layer < config.num_layers; layer++)
    if (!layers.has(layer)) return `num_hidden_layers is ${config.num_layers}, and there is no tensor of layer ${layer}`
  return null
}

const surplusLayer: Step = ({ all, config, isLlama, raw }) => {
  const surplus = isLlama ? beyond(config, raw, all) : undefined
  return surplus === undefined ? null : `num_hidden_layers is ${config.num_layers}, and there is ${shortName(surplus.name)}`
}

const missingNorm: Step = ({ all, isLlama }) => (isLlama && !all.some(({ name }) => anyFinalNorm.test(name)) ? "there is no model.norm" : null)

const missingEmbeddings: Step = ({ all }) => (all.some(({ name }) => embedding.test(name)) ? null : "there are no embeddings")

const missingHead: Step = ({ all, config, isLlama }) =>
  isLlama && config.shape?.tied_embeddings === false && !all.some(({ name }) => head.test(name))
    ? "there is no output head, and tie_word_embeddings is not set"
    : null

const missingPrefix: Step = ({ all, config }) => {
  const unnamed = withBeginnings.has(config.architecture) ? beginnings.find((part) => !all.some(({ name }) => name.startsWith(part))) : undefined
  return unnamed === undefined ? null : `no tensor name begins with ${unnamed}, which ${config.architecture} requires`
}

/** Why the shape of a norm contradicts the configuration, or null. */
const normProblem = ({ hidden_size }: ModelConfig, { name, shape }: TensorGroup): string | null =>
  isShape(shape, [hidden_size]) ? null : `${shortName(name)} is ${written(shape)}, and hidden_size is ${hidden_size}`

/** Why the shape of a linear module contradicts the configuration, or null. */
const linearProblem = (expected: readonly [output: number, input: number] | undefined, { dtype, name, shape }: TensorGroup): string | null =>
  expected === undefined || shape.length !== 2 || !unpacked.has(dtype) || isShape(shape, expected)
    ? null
    : `${shortName(name)} is ${written(shape)}, and its configuration requires ${written(expected)}`

const tensorProblem = (config: ModelConfig, shapes: ReturnType<typeof linearShapes>, tensor: TensorGroup): string | null => {
  const final = finalNorm.test(tensor.name) ? normProblem(config, tensor) : null
  if (final !== null) return final
  const match = layerOf.exec(tensor.name)
  if (match === null || Number(match[1]) >= config.num_layers) return null
  const rest = match[2] ?? ""
  const norm = norms.includes(rest) ? normProblem(config, tensor) : null
  return norm ?? linearProblem(rest.endsWith(".weight") ? shapes?.get(rest.slice(0, -".weight".length)) : undefined, tensor)
}

const wrongShape: Step = ({ config, fromHeaders }) => {
  const shapes = linearShapes(config)
  for (const tensor of fromHeaders) {
    const problem = tensorProblem(config, shapes, tensor)
    if (problem !== null) return problem
  }
  return null
}

/** For all models, in the order in which contradictions are reported. */
const commonSteps: ReadonlyArray<Step> = [
  ({ all, config, fromHeaders }) => typeProblem(config, all, fromHeaders),
  ({ config, fromHeaders, isKnown, raw }) => vocabularyProblem(config, raw, fromHeaders, isKnown),
  missingLayer
]

/** For layers with Llama's module names, after the common steps. */
const knownSteps: ReadonlyArray<Step> = [
  ({ config, isLlama, modules }) => lacking(modules, config.num_layers, isLlama),
  surplusLayer,
  missingNorm,
  missingEmbeddings,
  missingHead,
  missingPrefix,
  wrongShape
]

/**
 * Compares a repository's tensors with its configuration, because an engine would fail only after the download.
 * `groups`: all, by name. `fromHeaders`: those whose type and shape come from a header. Unknown layouts are checked for
 * common properties: layers, vocabulary, width and types.
 */
export const weightsAgree = (
  config: ModelConfig,
  raw: Json,
  groups: ReadonlyArray<TensorGroup>,
  fromHeaders: ReadonlyArray<TensorGroup>
): Result.Result<void, Unreadable> => {
  const isText = ({ name }: TensorGroup) => !isTower(name)
  const all = groups.filter(isText)
  const { layers, modules } = modulesOf(all.map(({ name }) => name))
  const isKnown = likeLlama.has(config.architecture)
  const isLlama = asLlama.has(config.architecture)
  const comparison: Comparison = { config, raw, all, fromHeaders: fromHeaders.filter(isText), isKnown, isLlama, layers, modules }
  for (const step of isKnown && layers.size > 0 ? [...commonSteps, ...knownSteps] : commonSteps) {
    const problem = step(comparison)
    if (problem !== null) return contradiction(problem)
  }
  return Result.succeed(undefined)
}
