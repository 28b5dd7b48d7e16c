import { type EngineLoad, shapeOf } from "@seatrial/domain"

/** Methods with one scale per group of values in a row. No kernel accepts part of a group. */
const grouped = /^(awq|gptq|auto-round|compressed-tensors|fp8)/

/**
 * The names and widths of the matrices that are split along their rows. Experts are not split if whole ones are
 * distributed.
 */
const splitMatrices = (config: EngineLoad["config"], expertsWhole: boolean): ReadonlyArray<readonly [name: string, width: number]> => {
  const shape = shapeOf(config)
  const attention = shape.layers.flatMap((group) =>
    group.kind === "state" || group.kind === "latent" ? [] : [["attention's output", config.num_attention_heads * group.head_size_v] as const]
  )
  const experts = shape.experts === null || expertsWhole ? [] : [["an expert", shape.experts.intermediate_size] as const]
  const dense = shape.intermediate_size === null || shape.experts !== null ? [] : [["a feed-forward layer", shape.intermediate_size] as const]
  return [...attention, ...experts, ...dense]
}

/**
 * Why quantized weights cannot be split over the GPUs of a host class, as the rest of a sentence; null if they can.
 * Matrices that are split along their rows (attention output, second half of a feed-forward layer) must be cut between
 * groups. Experts are not cut if whole experts are distributed.
 */
export const splitIssue = ({ card, config }: EngineLoad, expertsWhole: boolean): string | null => {
  const size = config.quantization_scheme?.group_size
  const gpus = card.gpu_count
  if (size === undefined || size < 2 || gpus === 1 || !grouped.test(config.quantization)) return null
  const cut = splitMatrices(config, expertsWhole).find(([, width]) => width % gpus !== 0 || (width / gpus) % size !== 0)
  if (cut === undefined) return null
  const [name, width] = cut
  return `the ${width} values of ${name} cannot be split over ${gpus} GPUs without cutting groups of ${size} quantized values`
}

/** Whether tensor parallelism would cut a group of quantized values, and distributing whole experts avoids it. */
export const needsWholeExperts = (load: EngineLoad): boolean => splitIssue(load, false) !== null && splitIssue(load, true) === null
