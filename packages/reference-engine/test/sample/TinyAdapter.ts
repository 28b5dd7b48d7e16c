import { Random } from "../../src/Random.ts"
import { encodeSafetensors, type NamedTensor } from "./SafetensorsFile.ts"
import { tinyShape } from "./TinyWeights.ts"

/** Which sample adapter to generate. */
export interface TinyAdapterOptions {
  readonly seed: number
  /** The repository of the base model, and optionally a ref. */
  readonly base: string
  readonly revision?: string
  readonly rank?: number
  readonly alpha?: number
  /** Modules by the last part of their names (default: query, value, output and down projections). */
  readonly targets?: ReadonlyArray<string>
  /** Additional members of `adapter_config.json`. */
  readonly config?: Readonly<Record<string, unknown>>
}

/** Path, output size and input size of each linear module in the layers of the sample model. */
const modules: Readonly<Record<string, readonly [path: string, output: number, input: number]>> = {
  q_proj: ["self_attn.q_proj", tinyShape.heads * tinyShape.headDim, tinyShape.hidden],
  k_proj: ["self_attn.k_proj", tinyShape.kvHeads * tinyShape.headDim, tinyShape.hidden],
  v_proj: ["self_attn.v_proj", tinyShape.kvHeads * tinyShape.headDim, tinyShape.hidden],
  o_proj: ["self_attn.o_proj", tinyShape.hidden, tinyShape.heads * tinyShape.headDim],
  gate_proj: ["mlp.gate_proj", tinyShape.intermediate, tinyShape.hidden],
  up_proj: ["mlp.up_proj", tinyShape.intermediate, tinyShape.hidden],
  down_proj: ["mlp.down_proj", tinyShape.hidden, tinyShape.intermediate]
}

const uniform = (random: Random, name: string, shape: readonly [number, number], width: number): NamedTensor => {
  const values = new Float32Array(shape[0] * shape[1])
  for (let i = 0; i < values.length; i++) values[i] = (random.unit() * 2 - 1) * width
  return { name, shape, values }
}

/**
 * The tensors of a sample adapter in the order of their names. The values are random and large enough to change the
 * answers of the model.
 */
export const tinyAdapterTensors = ({
  rank = 8,
  seed,
  targets = ["q_proj", "v_proj", "o_proj", "down_proj"]
}: TinyAdapterOptions): ReadonlyArray<NamedTensor> => {
  const random = new Random(seed)
  const tensors = Array.from({ length: tinyShape.layers }, (_, layer) =>
    targets.flatMap((target) => {
      const [path = target, output = 0, input = 0] = modules[target] ?? []
      const name = `base_model.model.model.layers.${layer}.${path}`
      return [
        uniform(random, `${name}.lora_A.weight`, [rank, input], Math.sqrt(3 / input)),
        uniform(random, `${name}.lora_B.weight`, [output, rank], Math.sqrt(3 / rank) * 0.5)
      ]
    })
  )
  return tensors.flat().sort((a, b) => (a.name < b.name ? -1 : 1))
}

/**
 * The files of a LoRA adapter's repository for the sample model, by name, as PEFT writes them. The same options give
 * the same bytes on every machine.
 */
export const makeTinyAdapter = (options: TinyAdapterOptions): ReadonlyMap<string, Uint8Array> => {
  const { alpha = 16, base, config = {}, rank = 8, revision, targets = ["q_proj", "v_proj", "o_proj", "down_proj"] } = options
  const written = {
    alpha_pattern: {},
    auto_mapping: null,
    base_model_name_or_path: base,
    bias: "none",
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    layers_to_transform: null,
    lora_alpha: alpha,
    lora_dropout: 0.05,
    modules_to_save: null,
    peft_type: "LORA",
    r: rank,
    rank_pattern: {},
    revision: revision ?? null,
    target_modules: targets,
    task_type: "CAUSAL_LM",
    use_dora: false,
    use_rslora: false,
    ...config
  }
  const readme = `---\nlicense: apache-2.0\nbase_model: ${base}\nlibrary_name: peft\n---\n\n# A sample adapter\n\nA LoRA adapter of rank ${rank} from a seeded random number generator.\n`
  return new Map([
    ["README.md", new TextEncoder().encode(readme)],
    ["adapter_config.json", new TextEncoder().encode(`${JSON.stringify(written, null, 2)}\n`)],
    ["adapter_model.safetensors", encodeSafetensors(tinyAdapterTensors(options))]
  ])
}
