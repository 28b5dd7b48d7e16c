import type { SmallModel, Tensors } from "./smallModel.ts"

/**
 * A second Llama, written from the formulas of the paper without code of the engine: float64, complete matrices, all
 * positions at once, an explicit causal sum, keys and values repeated for each query head. It is slow on purpose.
 */
type Vector = ReadonlyArray<number>

const at = (vector: Vector, index: number): number => {
  const value = vector[index]
  if (value === undefined) throw new Error(`no element ${index}`)
  return value
}
const range = (length: number) => Array.from({ length }, (_, i) => i)
const sum = (vector: Vector) => vector.reduce((total, value) => total + value, 0)

const angleOf = (model: SmallModel, pair: number, position: number): number => {
  const frequency = 1 / model.ropeTheta ** ((2 * pair) / model.headDim)
  const scaling: Record<string, unknown> = { ...model.ropeScaling }
  const field = (name: string) => Number(scaling[name])
  if (scaling.rope_type === "linear") return (position / field("factor")) * frequency
  if (scaling.rope_type === "yarn") {
    // Pairs that turn often within the original length stay unchanged, pairs that turn rarely are stretched, and the
    // factor is linear in between.
    const pairOf = (turns: number) =>
      (model.headDim * Math.log(field("original_max_position_embeddings") / (turns * 2 * Math.PI))) / (2 * Math.log(model.ropeTheta))
    const [first, last] = [Math.max(Math.floor(pairOf(32)), 0), Math.min(Math.ceil(pairOf(1)), model.headDim - 1)]
    const share = first === last ? (pair > first ? 1 : 0) : Math.min(1, Math.max(0, (pair - first) / (last - first)))
    return position * frequency * (share / field("factor") + (1 - share))
  }
  if (scaling.rope_type !== "llama3") return position * frequency
  const turns = (field("original_max_position_embeddings") * frequency) / (2 * Math.PI)
  const low = field("low_freq_factor")
  const high = field("high_freq_factor")
  if (turns > high) return position * frequency
  if (turns < low) return (position * frequency) / field("factor")
  const share = (turns - low) / (high - low)
  return position * (share * frequency + ((1 - share) * frequency) / field("factor"))
}

/** The logits after the last token. */
export const slowLogits = (model: SmallModel, tensors: Tensors, tokens: Vector): Vector => {
  const matrix = (name: string): ReadonlyArray<Vector> => {
    const tensor = tensors.get(name)
    if (tensor === undefined) throw new Error(`no tensor ${name}`)
    const columns = at(tensor.shape, tensor.shape.length - 1)
    return range(tensor.values.length / columns).map((row) => [...tensor.values.subarray(row * columns, (row + 1) * columns)])
  }
  const vector = (name: string): Vector => matrix(name)[0] ?? []
  const times = (rows: ReadonlyArray<Vector>, x: Vector) => rows.map((row) => sum(row.map((value, i) => value * at(x, i))))
  const norm = (x: Vector, weight: Vector) => {
    const meanSquare = sum(x.map((value) => value * value)) / x.length
    return x.map((value, i) => (value / Math.sqrt(meanSquare + 1e-5)) * at(weight, i))
  }
  const plus = (x: Vector, y: Vector) => x.map((value, i) => value + at(y, i))
  const half = model.headDim / 2
  const scaling: Record<string, unknown> = { ...model.ropeScaling }
  const size = scaling.rope_type === "yarn" ? 0.1 * Math.log(Number(scaling.factor)) + 1 : 1
  const turned = (head: Vector, position: number) =>
    head.map((value, i) => {
      const angle = angleOf(model, i % half, position)
      const partner = i < half ? -at(head, i + half) : at(head, i - half)
      return size * (value * Math.cos(angle) + partner * Math.sin(angle))
    })
  const heads = (x: Vector, count: number) => range(count).map((head) => x.slice(head * model.headDim, (head + 1) * model.headDim))
  const embedding = matrix("model.embed_tokens.weight")
  let states = tokens.map((token) => embedding[token] ?? [])
  for (const layer of range(model.layers)) {
    const name = (part: string) => `model.layers.${layer}.${part}.weight`
    const [q, k, v, o] = ["q", "k", "v", "o"].map((part) => matrix(name(`self_attn.${part}_proj`)))
    const [gate, up, down] = ["gate", "up", "down"].map((part) => matrix(name(`mlp.${part}_proj`)))
    if (!q || !k || !v || !o || !gate || !up || !down) throw new Error("a matrix is missing")
    const normed = states.map((state) => norm(state, vector(name("input_layernorm"))))
    const queries = normed.map((x, position) => heads(times(q, x), model.heads).map((head) => turned(head, position)))
    const repeated = (all: ReadonlyArray<Vector>) => all.flatMap((head) => range(model.heads / model.kvHeads).map(() => head))
    const keys = normed.map((x, position) => repeated(heads(times(k, x), model.kvHeads).map((head) => turned(head, position))))
    const values = normed.map((x) => repeated(heads(times(v, x), model.kvHeads)))
    states = states.map((state, position) => {
      const attended = range(model.heads).flatMap((head) => {
        const query = queries[position]?.[head] ?? []
        const exponents = range(position + 1).map((past) =>
          Math.exp(sum(query.map((value, i) => value * at(keys[past]?.[head] ?? [], i))) / Math.sqrt(model.headDim))
        )
        return range(model.headDim).map((i) => sum(exponents.map((weight, past) => weight * at(values[past]?.[head] ?? [], i))) / sum(exponents))
      })
      const middle = plus(state, times(o, attended))
      const inner = norm(middle, vector(name("post_attention_layernorm")))
      const gated = times(gate, inner).map((value, i) => (value / (1 + Math.exp(-value))) * at(times(up, inner), i))
      return plus(middle, times(down, gated))
    })
  }
  const last = states[states.length - 1] ?? []
  return times(matrix(model.tied ? "model.embed_tokens.weight" : "lm_head.weight"), norm(last, vector("model.norm.weight")))
}
