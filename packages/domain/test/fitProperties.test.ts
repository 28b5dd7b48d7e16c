import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  blockOf,
  Commit,
  calibrate,
  calibrationOf,
  derivePreview,
  divisionProblem,
  type EngineContract,
  type Estimate,
  estimateFit,
  type FitInput,
  type HostClass,
  type KvLayout,
  type LayerGroup,
  type ModelConfig,
  nothingServed,
  type RepositoryFacts,
  sequenceBytes
} from "../src/index.ts"
import { isFit } from "./fit.ts"

const worlds = { arbitrary: { runs: Number(process.env.SEATRIAL_WORLDS ?? 100) } }
const gib = 2 ** 30
const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Sizes that generate a model of any kind. */
const Sizes = Schema.Struct({
  layers: int(1, 96),
  kinds: Schema.Array(Schema.Literals(["full", "sliding", "chunked", "latent", "state"])).check(Schema.isMinLength(1), Schema.isMaxLength(3)),
  heads: int(0, 7),
  kvHeads: int(0, 7),
  head: int(4, 9),
  window: int(1, 9_000),
  vocabulary: int(100, 300_000),
  context: int(1, 300_000),
  experts: Schema.Boolean,
  weightsGib: int(1, 400)
})

const groupOf = (sizes: typeof Sizes.Type, kind: LayerGroup["kind"]): LayerGroup => {
  const { layers } = sizes
  const [kv_heads, head_size, head_size_v] = [2 ** Math.min(sizes.kvHeads, sizes.heads), 2 ** sizes.head, 2 ** sizes.head]
  switch (kind) {
    case "full":
      return { kind, layers, kv_heads, head_size, head_size_v }
    case "sliding":
      return { kind, layers, kv_heads, head_size, head_size_v, window: sizes.window }
    case "chunked":
      return { kind, layers, kv_heads, head_size, head_size_v, chunk: sizes.window }
    case "latent":
      return { kind, layers, latent_size: 576, index_bytes: 0, absorbed_values: 512 * head_size }
    case "state":
      return { kind, layers, conv_values: 3 * head_size, state_values: 64 * head_size, state_float32: true }
  }
}

const configOf = (sizes: typeof Sizes.Type): ModelConfig => ({
  architecture: "AnyForCausalLM",
  model_type: "any",
  num_layers: sizes.layers * sizes.kinds.length,
  hidden_size: 2 ** (sizes.heads + sizes.head),
  num_attention_heads: 2 ** sizes.heads,
  num_kv_heads: 2 ** Math.min(sizes.kvHeads, sizes.heads),
  head_dim: 2 ** sizes.head,
  vocab_size: sizes.vocabulary,
  native_context: sizes.context,
  sliding_window: null,
  dtype: "bfloat16",
  quantization: "none",
  shape: {
    layers: sizes.kinds.map((kind) => groupOf(sizes, kind)),
    intermediate_size: 4_096,
    experts: sizes.experts ? { count: 8, active: 2, intermediate_size: 1_024 } : null,
    vision: null,
    tied_embeddings: false,
    softcapped_logits: false
  }
})

const none = { low: 0, high: 0 }
const engine: EngineContract = {
  runtime: "vllm",
  version: "test",
  architectures: new Set(["AnyForCausalLM"]),
  quantizations: new Set(["none"]),
  kvCacheDtypes: new Set(["auto", "fp8"]),
  memory: {
    budget: ({ card }) => card.gpu_memory_bytes * 0.9,
    blockTokens: () => 16,
    kvValueBytes: (_, dtype) => (dtype === "auto" ? 2 : 1),
    stepTokens: () => 2_048,
    sequences: () => 256,
    latentAlignment: 1,
    groupsLayers: true,
    statesPerSequence: () => 1,
    extraLoadedBytes: 2 ** 27,
    halvesFloat32: true,
    expertPadding: () => ({ low: 1, high: 1.1 }),
    overhead: () => ({ activation: { low: gib / 2, high: gib }, runtime: none, graphs: none, afterPool: { low: 0, high: gib } })
  },
  served: nothingServed,
  flagIssue: () => null
}
const hostClass = (name: string, gibibytes: number, count: number, price: number): HostClass => ({
  name,
  runtimes: [{ runtime: "vllm", image: "i" }],
  gpu_pool: `card-${gibibytes}`,
  gpu_count: count,
  gpu_memory_bytes: gibibytes * gib,
  price_per_gpu_hour_micros: String(price),
  simulated: false
})
const classes = [
  hostClass("a", 24, 1, 1_000_000),
  hostClass("b", 48, 1, 2_000_000),
  hostClass("c", 80, 1, 4_000_000),
  hostClass("d", 80, 4, 4_000_000),
  hostClass("e", 80, 3, 3_000_000),
  hostClass("f", 141, 8, 5_000_000)
]
const inputOf = (sizes: typeof Sizes.Type, host: HostClass): FitInput => ({
  config: configOf(sizes),
  weightsBytes: sizes.weightsGib * gib,
  engine,
  hostClass: host,
  kvCacheDtype: "auto",
  contextLimit: sizes.context
})
const factsOf = (sizes: typeof Sizes.Type): RepositoryFacts => ({
  repo: "any/model",
  ref: "main",
  commit: Commit.make("a".repeat(40)),
  license: null,
  gated: false,
  files: [],
  config: configOf(sizes),
  weights_bytes: sizes.weightsGib * gib,
  parameters: 1,
  chat_template: null
})
const layout: KvLayout = { gpuCount: 1, valueBytes: 2, stateValueBytes: 2, blockTokens: 16, stepTokens: 2_048, latentAlignment: 1, statesPerSequence: 1 }

/** All numbers in a value. */
const numbersIn = (value: unknown): ReadonlyArray<number> =>
  typeof value === "number" ? [value] : typeof value === "object" && value !== null ? Object.values(value).flatMap(numbersIn) : []

describe("the fit of any model", () => {
  // The state size determines the block length and so the rounding: a smaller state may round up by one more block.
  const roundedBy = (config: ModelConfig) => 2 * Math.max(...[1, 2, 4, 8].map((gpuCount) => blockOf(config, { ...layout, valueBytes: 1, gpuCount })))

  it.prop(
    "a longer sequence never needs less, and an 8-bit cache or more GPUs never need more",
    [Sizes, int(1, 200_000), Schema.Boolean],
    ([sizes, tokens, groupsLayers]) => {
      const config = configOf(sizes)
      const own = { ...layout, groupsLayers }
      const bytes = sequenceBytes(config, own, tokens)
      const bound = sizes.kinds.includes("state") ? sequenceBytes(config, own, tokens + roundedBy(config)) : bytes
      return (
        bytes <= sequenceBytes(config, own, tokens + 1) &&
        sequenceBytes(config, { ...own, valueBytes: 1 }, tokens) <= bound &&
        sequenceBytes(config, { ...own, gpuCount: 2 }, tokens) <= bound
      )
    },
    worlds
  )

  it.prop(
    "layers in groups never need less than one by one, and exactly as much if all keep the same tokens",
    [Sizes, int(1, 200_000)],
    ([sizes, tokens]) => {
      const config = configOf(sizes)
      const [alone, grouped] = [false, true].map((groupsLayers) => sequenceBytes(config, { ...layout, groupsLayers }, tokens))
      if (alone === undefined || grouped === undefined) return false
      // Latents cannot be padded, so windows next to them are not used at all.
      if (new Set(sizes.kinds).size > 1) return sizes.kinds.includes("latent") || grouped >= alone
      return grouped === alone
    },
    worlds
  )

  it.prop(
    "if heads can be divided, twice the GPUs leave no less memory and no shorter context",
    [Sizes, Schema.Literals([1, 2, 4])],
    ([sizes, count]) => {
      const [few, many] = [count, count * 2].map((gpus) => hostClass("h", 80, gpus, 1))
      if (few === undefined || many === undefined) return false
      const config = configOf(sizes)
      if (divisionProblem(config, few.gpu_count) !== null || divisionProblem(config, many.gpu_count) !== null) return true
      const [one, other] = [estimateFit(inputOf(sizes, few)), estimateFit(inputOf(sizes, many))]
      if (!("fit" in one)) return true
      const shortest = one.fit.max_context - (sizes.kinds.includes("state") ? roundedBy(config) : 0)
      return "fit" in other && other.components.pool.low >= one.components.pool.low && other.fit.max_context >= shortest
    },
    worlds
  )

  it.prop(
    "an 8-bit cache fits whenever a 16-bit one does, with no shorter context and no fewer sequences",
    [Sizes],
    ([sizes]) =>
      classes.every((host) => {
        const [wide, narrow] = [estimateFit(inputOf(sizes, host)), estimateFit({ ...inputOf(sizes, host), kvCacheDtype: "fp8" })]
        if (!("fit" in wide) || sizes.kinds.includes("state")) return true
        if (!("fit" in narrow)) return false
        // If only the smaller cache fits the smallest pool, its figures are those of that pool, and the others those of the largest.
        const hasSamePool = (other: Estimate) => other.fit.kv_cache_bytes === wide.fit.kv_cache_bytes
        if (hasSamePool(narrow) && narrow.fit.max_context < wide.fit.max_context) return false
        const same = estimateFit({ ...inputOf(sizes, host), kvCacheDtype: "fp8", maxContext: wide.fit.max_context })
        return "fit" in same && (!hasSamePool(same) || same.fit.concurrent_sequences >= wide.fit.concurrent_sequences)
      }),
    worlds
  )

  it.prop(
    "components add up to the budget, and every figure is a finite number",
    [Sizes],
    ([sizes]) =>
      classes.every((host) => {
        const result = estimateFit(inputOf(sizes, host))
        if (!numbersIn(result).every(Number.isSafeInteger)) return false
        if (!("fit" in result)) return true
        const { components, fit } = result
        return (
          fit.weights_bytes + fit.overhead_bytes.high + components.pool.low === components.budget &&
          fit.weights_bytes + fit.overhead_bytes.low + components.pool.high === components.budget &&
          fit.headroom_bytes.low === components.pool.low - components.sequence &&
          fit.headroom_bytes.high >= 0 &&
          fit.concurrent_sequences >= 1
        )
      }),
    worlds
  )

  it.prop(
    "a remedy's settings fit when they are sent, and alternatives are sorted by price",
    [Sizes, int(1, 300_000), Schema.Literals(["a", "b", "c", "d", "e", ""])],
    ([sizes, context, name]) => {
      const preview = (request: Parameters<typeof derivePreview>[0]["request"]) =>
        derivePreview({ facts: factsOf(sizes), ref: null, request, hostClasses: classes, engines: [engine] })
      const answer = preview({ max_context: context, ...(name === "" ? {} : { host_class: name }) })
      if (answer.kind === "derived") {
        const prices = answer.alternatives.map(({ gpu_count, host_class }) => {
          const hostClass = classes.find((host) => host.name === host_class)
          return Number(hostClass?.price_per_gpu_hour_micros) * gpu_count
        })
        return prices.every((price, index) => index === 0 || price >= (prices[index - 1] ?? 0)) && preview(answer.serving).kind === "derived"
      }
      if (answer.remedy.serving === null) return true
      const again = preview(answer.remedy.serving)
      if (again.kind !== "derived") return false
      const { host_class, kv_cache_dtype, max_context } = again.serving
      return (
        host_class === answer.remedy.serving.host_class &&
        kv_cache_dtype === answer.remedy.serving.kv_cache_dtype &&
        max_context === answer.remedy.serving.max_context
      )
    },
    worlds
  )

  it("heads that the GPUs do not divide are refused by name, with a host class that divides them as the remedy", () => {
    const sizes = {
      layers: 10,
      kinds: ["full"],
      heads: 5,
      kvHeads: 3,
      head: 7,
      window: 1,
      vocabulary: 1_000,
      context: 4_096,
      experts: false,
      weightsGib: 100
    } as const
    const answer = derivePreview({ facts: factsOf(sizes), ref: null, request: { host_class: "e" }, hostClasses: classes, engines: [engine] })
    assert.strictEqual(answer.kind, "refused")
    if (answer.kind !== "refused") return
    assert.strictEqual(answer.reason.code, "does_not_fit")
    assert.include(answer.reason.message, "32 attention heads cannot be divided by 3 GPUs")
    assert.strictEqual(answer.remedy.serving?.host_class, "d")
  })

  it("an 8-bit cache is the remedy if it makes the context fit on the requested host class", () => {
    const sizes = {
      layers: 80,
      kinds: ["full"],
      heads: 6,
      kvHeads: 3,
      head: 7,
      window: 1,
      vocabulary: 1_000,
      context: 131_072,
      experts: false,
      weightsGib: 40
    } as const
    const answer = derivePreview({
      facts: factsOf(sizes),
      ref: null,
      request: { host_class: "c", max_context: 131_072 },
      hostClasses: classes,
      engines: [engine]
    })
    assert.strictEqual(answer.kind, "refused")
    if (answer.kind !== "refused") return
    assert.deepInclude(answer.remedy.serving, { host_class: "c", kv_cache_dtype: "fp8", max_context: 131_072 })
    assert.include(answer.remedy.message, "with an 8-bit KV cache (fp8) on the host class c, or on the host class d")
  })

  it("files that exceed a node's space are refused before scheduling, with a host class that has enough as the remedy", () => {
    const sizes = {
      layers: 2,
      kinds: ["full"],
      heads: 3,
      kvHeads: 3,
      head: 6,
      window: 1,
      vocabulary: 1_000,
      context: 512,
      experts: false,
      weightsGib: 1
    } as const
    const files = [1, 2].map((part) => ({ path: `${part}.safetensors`, size: gib, blob_id: "0".repeat(40), sha256: null }))
    const ask = (room: number, alternatives: ReadonlyArray<HostClass> = []) =>
      derivePreview({
        facts: { ...factsOf(sizes), files },
        ref: null,
        request: {},
        hostClasses: [{ ...hostClass("copies", 80, 1, 1), weights_limit_bytes: room }, ...alternatives],
        engines: [engine]
      })
    assert.strictEqual(ask(2 * gib).kind, "derived")
    const refused = ask(2 * gib - 1)
    assert.strictEqual(refused.kind === "refused" ? refused.reason.code : "", "does_not_fit")
    assert.match(refused.kind === "refused" ? refused.reason.message : "", /2\.0 GiB \(2147483648 bytes\), but a node of copies has room for only 2\.0 GiB/)
    const withAlternative = ask(gib, [hostClass("store", 80, 1, 2)])
    assert.strictEqual(withAlternative.kind === "derived" ? withAlternative.serving.host_class : "", "store")
    assert.deepStrictEqual(withAlternative.kind === "derived" ? withAlternative.alternatives : null, [])
  })

  it("a host class with more GPUs than the organization may hold is not chosen, and the refusal names the limit if there is no other", () => {
    const sizes = {
      layers: 2,
      kinds: ["full"],
      heads: 3,
      kvHeads: 3,
      head: 6,
      window: 1,
      vocabulary: 1_000,
      context: 512,
      experts: false,
      weightsGib: 1
    } as const
    const hostClasses = [hostClass("cheap", 80, 2, 1), hostClass("dear", 80, 1, 9)]
    const ask = (gpuLimit: number | null, request = {}) =>
      derivePreview({ facts: factsOf(sizes), ref: null, request, hostClasses, engines: [engine], gpuLimit })
    const chosen = (answer: ReturnType<typeof ask>) => (answer.kind === "derived" ? answer.serving.host_class : answer.remedy.serving?.host_class)
    assert.deepStrictEqual(
      [null, 2, 1].map((limit) => chosen(ask(limit))),
      ["cheap", "cheap", "dear"]
    )
    const within = ask(1)
    assert.deepStrictEqual(within.kind === "derived" ? within.alternatives : null, [])
    const onlyCheap = ask(1, { host_class: "cheap" })
    assert.strictEqual(onlyCheap.kind === "refused" ? onlyCheap.reason.message : "", "The organization may hold 1 GPU at once, and an engine on cheap takes 2.")
    assert.strictEqual(chosen(onlyCheap), "dear")
    const none = ask(0)
    assert.deepStrictEqual(none.kind === "refused" ? [none.reason.code, none.remedy.serving] : none.kind, ["does_not_fit", null])
    assert.match(none.kind === "refused" ? none.remedy.message : "", /administrators for a limit of at least 1 GPU /)
    // One host class is too small, and the limit excludes the other.
    const mixed = derivePreview({ facts: factsOf({ ...sizes, weightsGib: 100 }), ref: null, request: {}, hostClasses, engines: [engine], gpuLimit: 1 })
    assert.deepInclude(mixed.kind === "refused" ? mixed.reason : {}, {
      code: "does_not_fit",
      message: "The organization may hold 1 GPU at once, and an engine on cheap takes 2."
    })
    assert.match(mixed.kind === "refused" ? mixed.remedy.message : "", /administrators for a limit of at least 2 GPUs /)
  })

  it("an original context for YaRN above the trained one is refused, with settings without it", () => {
    const sizes = {
      layers: 10,
      kinds: ["full"],
      heads: 5,
      kvHeads: 3,
      head: 7,
      window: 1,
      vocabulary: 1_000,
      context: 32_768,
      experts: false,
      weightsGib: 10
    } as const
    const ask = (request: Parameters<typeof derivePreview>[0]["request"]) =>
      derivePreview({ facts: factsOf(sizes), ref: null, request, hostClasses: classes, engines: [engine] })
    const answer = ask({ yarn: { factor: 2, original_context: 65_536 } })
    assert.strictEqual(answer.kind, "refused")
    if (answer.kind !== "refused") return
    assert.strictEqual(answer.reason.code, "context_too_long")
    assert.deepStrictEqual(answer.remedy.serving?.yarn, { factor: 2 })
    const extended = ask({ yarn: { factor: 2 } })
    assert.strictEqual(extended.kind === "derived" ? extended.serving.max_context : 0, 65_536)
    // Four is the largest factor for models not trained on longer texts; a larger one must be requested.
    const remedy = (max_context: number) => {
      const refused = ask({ max_context })
      return refused.kind === "refused" ? refused.remedy.message : ""
    }
    assert.match(remedy(4 * 32_768), /or extend the model's context with yarn \(factor 4\)\.$/)
    assert.notInclude(remedy(4 * 32_768 + 1), "yarn")
  })
})

describe("earlier starts", () => {
  const of = {
    config: configOf({ layers: 1, kinds: ["full"], heads: 1, kvHeads: 1, head: 4, window: 1, vocabulary: 100, context: 1, experts: false, weightsGib: 1 }),
    hostClass: hostClass("h", 80, 1, 1),
    engineVersion: "v-1.2.3",
    quantization: "none",
    stepTokens: 2_048
  }
  const start = {
    architecture: "AnyForCausalLM",
    gpu_pool: "card-80",
    gpu_count: 1,
    engine_version: "v-1.2.9",
    quantization: "none",
    step_tokens: 2_048,
    estimated: { low: 100, high: 200 },
    measured: 150
  }
  it("narrow the estimate to their relative range, also for a model of another size", () => {
    const narrowed = calibrate({ low: 1_000, high: 3_000 }, [start, { ...start, measured: 160 }], of)
    assert.deepStrictEqual(narrowed, { low: 1_800, high: 2_400 })
  })
  it.each([
    ["card", { gpu_pool: "card-48" }],
    ["engine", { engine_version: "w-1.2.3" }],
    ["minor version of the engine", { engine_version: "v-1.3.3" }],
    ["quantization", { quantization: "fp8" }],
    ["size of a step", { step_tokens: 8_192 }],
    ["architecture", { architecture: "OtherForCausalLM" }],
    ["number of GPUs", { gpu_count: 2 }]
  ])("with another %s are ignored", (_, other) => {
    assert.isNull(calibrate({ low: 1_000, high: 3_000 }, [{ ...start, ...other }], of))
  })
  it.prop(
    "halve the interval after one start and still contain its figure, even if it lay outside; simulated GPUs use the reference engine's",
    [Sizes, Schema.Finite.check(Schema.isBetween({ minimum: -0.9, maximum: 1.9 })), Schema.Boolean],
    ([sizes, place, simulated]) => {
      const host = { ...hostClass("h", 80, 1, 1), simulated }
      const plain = estimateFit(inputOf(sizes, host))
      if (!("fit" in plain)) return true
      const { high, low } = plain.fit.overhead_bytes
      const took = Math.max(0, low + place * (high - low))
      const known = calibrationOf(
        { architecture: "AnyForCausalLM", gpu_pool: host.gpu_pool, gpu_count: 1, engine_version: simulated ? "simulated-test" : "test", quantization: "none" },
        {
          weightsBytes: plain.fit.weights_bytes,
          components: plain.components,
          measured: { kv_cache_bytes: plain.components.budget - plain.fit.weights_bytes - took }
        }
      )
      if (known === null) return false
      const calibrations = [known]
      const real = estimateFit({ ...inputOf(sizes, host), hostClass: { ...host, simulated: false }, calibrations })
      if ("fit" in real && real.fit.calibrated === simulated) return false
      const next = estimateFit({ ...inputOf(sizes, host), hostClass: host, calibrations })
      // It takes more memory than available.
      if (!("fit" in next)) return took > low
      const { high: upper, low: lower } = next.fit.overhead_bytes
      return next.fit.calibrated && upper - lower <= (high - low) / 2 + 2 && lower <= took + 1 && took <= upper + 1
    },
    worlds
  )
  it("mark the fit as calibrated", () => {
    const sizes = {
      layers: 8,
      kinds: ["full"],
      heads: 5,
      kvHeads: 3,
      head: 7,
      window: 1,
      vocabulary: 1_000,
      context: 4_096,
      experts: false,
      weightsGib: 10
    } as const
    const host = hostClass("h", 80, 1, 1)
    const plain = estimateFit(inputOf(sizes, host))
    assert.isTrue("fit" in plain)
    if (!("fit" in plain)) return
    const { high, low } = plain.fit.overhead_bytes
    const known = { ...start, engine_version: "test", estimated: { low, high }, measured: (low + high) / 2 }
    const calibrated = estimateFit({ ...inputOf(sizes, host), calibrations: [known] })
    assert.isTrue("fit" in calibrated && isFit(calibrated.fit) && calibrated.fit.calibrated)
    if (!("fit" in calibrated)) return
    assert.isBelow(calibrated.fit.overhead_bytes.high - calibrated.fit.overhead_bytes.low, (high - low) / 2)
  })
})
