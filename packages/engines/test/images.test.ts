import { assert, describe, it } from "@effect/vitest"
import { Commit, decideServing, type HostClass, type ModelConfig, type RepositoryFacts, revisionCapabilities, type ServingSettings } from "@seatrial/domain"
import { Schema } from "effect"
import { servedImages } from "../src/images.ts"
import { qwen2Config, qwen2Shape } from "./anyModel.ts"
import { realEngine } from "./realEngine.ts"

const gib = 2 ** 30
const commit = Schema.decodeSync(Commit)("c".repeat(40))
const seeing = `{% for part in message['content'] %}{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}`
const blind = "{% for message in messages %}{{ message['content'] }}{% endfor %}"

/** Qwen2.5-VL 7B, as read from its configuration. */
const config: ModelConfig = {
  ...qwen2Config,
  architecture: "Qwen2_5_VLForConditionalGeneration",
  model_type: "qwen2_5_vl",
  native_context: 128_000,
  shape: { ...qwen2Shape, vision: { layers: 32, hidden_size: 1_280, intermediate_size: 3_420, patches: 65_536, image_tokens: 16_384 } }
}
/** Gemma 3 4B: each image is resized to one size and becomes 256 tokens. */
const gemma: ModelConfig = {
  ...config,
  architecture: "Gemma3ForConditionalGeneration",
  shape: {
    layers: config.shape?.layers ?? [],
    intermediate_size: 10_240,
    experts: null,
    vision: { layers: 27, hidden_size: 1_152, intermediate_size: 4_304, patches: 4_096, image_tokens: 256 },
    tied_embeddings: true,
    softcapped_logits: false
  }
}
const unreviewed: ModelConfig = { ...config, architecture: "InternVLForConditionalGeneration" }
const text: ModelConfig = { ...config, architecture: "Qwen2ForCausalLM", shape: { ...(config.shape ?? assert.fail()), vision: null } }

const hostClass = { gpu_pool: "NVIDIA-H100-80GB-HBM3", gpu_count: 1, gpu_memory_bytes: 79.19 * gib }
const loadOf = (of: ModelConfig, flags: Readonly<Record<string, unknown>> = {}) => ({ config: of, flags, card: hostClass, maxContext: 32_768 })

for (const engine of [realEngine("vllm"), realEngine("sglang")]) {
  const vllm = engine.runtime === "vllm"
  const limit = vllm ? "limit_mm_per_prompt" : "limit_mm_data_per_request"
  const on = vllm ? {} : { enable_multimodal: true }
  const chosen = (of: ModelConfig, template: string | null, flags: NonNullable<ServingSettings["engine_flags"]> = {}) => ({
    ...engine.chosenFlags?.(loadOf(of, flags), { chat_template: template }),
    ...flags
  })
  const capable = (of: ModelConfig, chat_template: string | null, engine_flags: NonNullable<ServingSettings["engine_flags"]>) =>
    revisionCapabilities(engine, { config: of, chat_template, commit }, { engine_flags })

  describe(`${engine.version}: images`, () => {
    it("are served within the initial limits if the model can see and its template has a place for images", () => {
      for (const each of [config, gemma]) {
        const flags = chosen(each, seeing)
        assert.isNull(engine.flagIssue(flags))
        assert.deepInclude(flags, { ...on, [limit]: vllm ? { image: 2, video: 0 } : { image: 2, video: 0, audio: 0 } })
        const { capability_sources, image_input, input_modalities, supports_image_input } = capable(each, seeing, flags)
        assert.deepStrictEqual([supports_image_input, input_modalities, capability_sources.supports_image_input], [true, ["text", "image"], "model_metadata"])
        assert.deepInclude(image_input, { max_images: 2, sources: ["base64", "https"], processor_revision: commit })
      }
    })

    it("are not served, and no memory is reserved, if the model, its template or its settings do not support them", () => {
      const none = (of: ModelConfig, template: string | null, flags: NonNullable<ServingSettings["engine_flags"]> = {}) => {
        const all = chosen(of, template, flags)
        assert.isFalse(capable(of, template, all).supports_image_input)
        return all
      }
      for (const [of, template] of [
        [config, blind],
        [config, null],
        [unreviewed, seeing]
      ] as const) {
        const flags = none(of, template)
        assert.notProperty(flags, limit)
        assert.strictEqual(flags.language_model_only, vllm ? true : undefined)
      }
      // This architecture has a tower for audio. Without the flag vLLM creates it and tests it with the largest input
      // that requests may contain.
      if (vllm) assert.strictEqual(none({ ...text, architecture: "UltravoxModel" }, seeing).language_model_only, true)
      assert.notProperty(none(text, seeing), "language_model_only")
      none(config, seeing, { [limit]: { image: 0 } })
      if (vllm) none(config, seeing, { language_model_only: true })
      if (vllm) none(config, seeing, { language_model_only: false })
      else none(config, seeing, { enable_multimodal: true })
      // A caller may set a limit for an unlisted model. The engine uses it, but the contract has no images.
      none(unreviewed, seeing, { ...on, [limit]: { image: 2 } })
      assert.strictEqual(capable(config, blind, chosen(config, seeing)).capability_sources.supports_image_input, "model_metadata")
      assert.strictEqual(capable(unreviewed, seeing, chosen(unreviewed, seeing)).capability_sources.supports_image_input, "engine")
    })

    it("are limited by the caller's setting, and never exceed the initial limits", () => {
      const allowed = (image: number) => capable(config, seeing, chosen(config, seeing, { ...on, [limit]: { image } })).image_input?.max_images
      assert.deepStrictEqual([allowed(1), allowed(2), allowed(8)], [1, 2, 2])
      assert.isNull(servedImages(config, "2"))
    })

    it("are the only media that the engine accepts", () => {
      const started = (of: ModelConfig) =>
        engine.container({
          settings: { runtime: engine.runtime, host_class: "h100", max_context: 8_192, kv_cache_dtype: "auto", engine_flags: chosen(of, seeing) },
          config: of,
          servedNames: ["org/model"],
          modelPath: "/models/m",
          hostClass,
          bootSeconds: 600,
          cachePath: "/cache"
        }).args
      const words = vllm
        ? ['--limit-mm-per-prompt={"image":2,"video":0}', "--mm-processor-cache-gb=0.5"]
        : ["--enable-multimodal", '--limit-mm-data-per-request={"image":2,"video":0,"audio":0}']
      assert.includeMembers([...started(config)], words)
      for (const word of words) assert.notInclude(started(unreviewed), word)
      assert.include(started(config), "--allowed-media-domains=none.invalid")
    })

    it("are part of the fit: the tower, and the images that are read at once", () => {
      const overhead = (of: ModelConfig, template: string | null) => engine.memory.overhead(loadOf(of, chosen(of, template)))
      const bytes = ({ activation, afterPool }: ReturnType<typeof overhead>) => activation.high + afterPool.high
      const tower = (65_536 * 2 * (3 * 3_420 + 6 * 1_280) * 1.3) / gib
      const [with_, without] = [bytes(overhead(config, seeing)), bytes(overhead(config, blind))]
      assert.isAbove(with_ / gib, (vllm ? 1 : 2) * tower)
      assert.isAbove(with_, without)
      if (vllm) {
        // 8,192 tokens of a step are 32 images of 256.
        assert.isAbove(overhead(gemma, seeing).activation.high / gib, 32 * ((4_096 * 2 * (3 * 4_304 + 6 * 1_152) * 1.3) / gib))
        const one = engine.memory.overhead(loadOf(gemma, { ...chosen(gemma, seeing), limit_mm_per_prompt: { image: 1 }, max_num_seqs: 4 }))
        assert.isBelow(one.activation.high, overhead(gemma, seeing).activation.high)
      } else {
        assert.isBelow(engine.memory.budget(loadOf(config, chosen(config, seeing))), engine.memory.budget(loadOf(config, chosen(config, blind))))
      }
    })
  })
}

it("that do not fit are disabled by a remedy, and the remedy fits when it is sent unchanged", () => {
  const facts: RepositoryFacts = {
    repo: "acme/seeing",
    ref: "main",
    commit,
    license: null,
    gated: false,
    files: [],
    config,
    weights_bytes: 20 * gib,
    weight_parts: { replicated: 0, key_value: 0, embeddings: gib, towers: 8 * gib, experts: 0, float32: 0, unloaded: 0 },
    parameters: 10_737_418_240,
    chat_template: seeing
  }
  const host: HostClass = {
    name: "small",
    runtimes: [{ runtime: "vllm", image: "v" }],
    ...hostClass,
    gpu_memory_bytes: 22 * gib,
    price_per_gpu_hour_micros: "1",
    simulated: false
  }
  const decide = (request: Partial<ServingSettings>) => decideServing({ facts, ref: null, request, hostClasses: [host], engines: [realEngine("vllm")] }).preview
  const refused = decide({})
  if (refused.kind !== "refused") return assert.fail(refused.kind)
  assert.strictEqual(refused.reason.code, "does_not_fit")
  assert.include(refused.remedy.message, "without images (engine flags language_model_only) on the host class small")
  const again = decide(refused.remedy.serving ?? assert.fail())
  if (again.kind !== "derived") return assert.fail(again.kind)
  assert.deepStrictEqual([again.capabilities.supports_image_input, again.serving.engine_flags?.language_model_only], [false, true])
})
