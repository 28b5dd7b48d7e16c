import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import type { HubRefusal, HubUnavailable } from "@seatrial/hub"
import {
  encodeSafetensors,
  makeTinyAdapter,
  makeTinyChat,
  type NamedTensor,
  type TinyAdapterOptions,
  tinyAdapterTensors
} from "@seatrial/reference-engine/testing"
import { Deferred, Effect, Option, Redacted } from "effect"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { sampleHubToken } from "../../src/hub/SampleHub.ts"
import { makeRepository, type SampleRepository } from "../../src/hub/SampleRepository.ts"
import { withHub } from "./withHub.ts"

const none = Option.none<Redacted.Redacted<string>>()
const token = Option.some(Redacted.make(sampleHubToken))
const files = (variant: "first" | "second") => Object.fromEntries(makeTinyChat({ seed: 7, variant }))
const base = makeRepository({
  name: "odd/base",
  commits: [
    { title: "First", files: files("first"), tag: "v1" },
    { title: "Second", files: files("second") }
  ]
})
const [second, first] = base.commits
const options: TinyAdapterOptions = { seed: 3, base: "odd/base" }

const adapterOf = (changed: Partial<TinyAdapterOptions> = {}, others: Readonly<Record<string, string | Uint8Array | undefined>> = {}): SampleRepository => {
  const all = Object.entries({ ...Object.fromEntries(makeTinyAdapter({ ...options, ...changed })), ...others })
  return makeRepository({
    name: "odd/adapter",
    commits: [{ title: "Adapter", files: Object.fromEntries(all.flatMap(([path, file]) => (file === undefined ? [] : [[path, file]]))) }]
  })
}
const withTensors = (change: (tensors: ReadonlyArray<NamedTensor>) => ReadonlyArray<NamedTensor>, changed: Partial<TinyAdapterOptions> = {}) =>
  adapterOf(changed, { "adapter_model.safetensors": encodeSafetensors(change(tinyAdapterTensors({ ...options, ...changed }))) })

const refusalOf = (effect: Effect.Effect<unknown, HubRefusal | HubUnavailable>) =>
  Effect.flatMap(Effect.flip(effect), (error) => (error._tag === "HubRefusal" ? Effect.succeed(error) : Effect.die(error)))

describe("a LoRA adapter", () => {
  it.live("is pinned with its base in few requests, and has the base's facts about the model", () => {
    const adapter = adapterOf()
    return withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const facts = yield* hub.inspect({ repo: "odd/adapter" }, none, "few")
          assert.isAtMost(asked.length, 12)
          const model = yield* hub.inspect({ repo: "odd/base", ref: second.id }, none, "few")
          assert.deepStrictEqual([facts.commit as string, facts.repo as string], [adapter.commits[0].id, "odd/adapter"])
          assert.deepStrictEqual([facts.config, facts.weights_bytes, facts.chat_template], [model.config, model.weights_bytes, model.chat_template])
          assert.deepStrictEqual(
            facts.files.map(({ path }) => path),
            ["adapter_config.json", "adapter_model.safetensors"]
          )
          const { bytes, ...known } = facts.adapter ?? assert.fail()
          assert.deepStrictEqual(known, {
            base: { repo: model.repo, commit: model.commit, files: model.files },
            rank: 8,
            uniform: true,
            alpha: 16,
            rslora: false,
            named_by: "list",
            listed: ["down_proj", "o_proj", "q_proj", "v_proj"],
            targets: ["down_proj", "o_proj", "q_proj", "v_proj"],
            unpaired: [],
            experts: false,
            template: "base",
            content_hash: null
          })
          assert.strictEqual(
            bytes,
            tinyAdapterTensors(options).reduce((sum, { values }) => sum + values.length * 2, 0)
          )
        }),
      { repositories: [base, adapter] }
    )
  })

  it.live("uses the base at the revision that it names, or at the commit that was pinned before", () =>
    withHub(
      (hub) =>
        Effect.gen(function* () {
          const baseOf = (source: Parameters<typeof hub.inspect>[0]) =>
            Effect.map(hub.inspect(source, none, "few"), ({ adapter }) => adapter?.base.commit as string)
          assert.strictEqual(yield* baseOf({ repo: "odd/adapter" }), first?.id)
          const pinned = (yield* hub.inspect({ repo: "odd/base" }, none, "few")).commit
          assert.strictEqual(yield* baseOf({ repo: "odd/adapter", base: pinned }), second.id)
        }),
      { repositories: [base, adapterOf({ revision: "v1" })] }
    )
  )

  it.live("has a hash that depends on each value and scale, but not on the order of tensors in the file", () => {
    const hashOf = (adapter: SampleRepository) =>
      withHub((hub) => Effect.map(hub.inspect({ repo: "odd/adapter" }, none), (facts) => facts.adapter?.content_hash), { repositories: [base, adapter] })
    return Effect.gen(function* () {
      const hash = createHash("sha256")
      for (const { name, shape, values } of tinyAdapterTensors(options)) {
        const encoded = encodeSafetensors([{ name, shape, values }])
        hash.update(`${name}\nBF16\n${shape.join(",")}\n`).update(encoded.subarray(encoded.length - values.length * 2))
      }
      const scaling = {
        alpha_pattern: {},
        lora_alpha: 16,
        r: 8,
        rank_pattern: {},
        target_modules: ["down_proj", "o_proj", "q_proj", "v_proj"],
        use_rslora: false
      }
      const plain = yield* hashOf(adapterOf())
      assert.strictEqual(plain, hash.update(JSON.stringify(scaling)).digest("hex"))
      assert.strictEqual(yield* hashOf(withTensors((tensors) => tensors.toReversed())), plain)
      const changed = withTensors((tensors) => tensors.map((tensor, at) => (at === 0 ? { ...tensor, values: tensor.values.map((value) => -value) } : tensor)))
      const others = [changed, adapterOf({ alpha: 17 }), adapterOf({ config: { use_rslora: true } }), adapterOf({ config: { alpha_pattern: { q_proj: 3 } } })]
      const hashes = yield* Effect.forEach(others, hashOf)
      assert.strictEqual(new Set([plain, ...hashes]).size, 5)
    })
  })

  it.live("has its own chat template if it differs from that of the base", () =>
    Effect.gen(function* () {
      const templateOf = (others: Readonly<Record<string, string | Uint8Array>>) =>
        withHub((hub) => Effect.map(hub.inspect({ repo: "odd/adapter" }, none, "few"), (facts) => [facts.adapter?.template, facts.chat_template]), {
          repositories: [base, adapterOf({}, others)]
        })
      const own = "{{ messages[0].content }}"
      assert.deepStrictEqual(yield* templateOf({ "chat_template.jinja": own }), ["file", own])
      assert.deepStrictEqual(yield* templateOf({ "tokenizer_config.json": JSON.stringify({ chat_template: own }) }), ["embedded", own])
      assert.strictEqual((yield* templateOf({ "tokenizer_config.json": files("second")["tokenizer_config.json"] ?? "" }))[0], "base")
    })
  )

  // The hub redirects files that are not in LFS to another of its addresses.
  const elsewhere = ({ count, file, path }: HubRequest): HubFault | undefined =>
    file !== null && !file.endsWith(".safetensors") && count === 1 ? { kind: "status", status: 307, headers: { location: `${path}?cached` } } : undefined
  it.live("needs at most 12 requests, even if the hub redirects small files and the base has a template file", () => {
    const named = makeRepository({ name: "odd/base", commits: [{ title: "Template", files: { ...files("second"), "chat_template.jinja": "{{ messages }}" } }] })
    return withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const { chat_template } = yield* hub.inspect({ repo: "odd/adapter" }, none, "few")
          assert.strictEqual(chat_template, "{{ messages }}")
          assert.isAtMost(asked.length, 12)
        }),
      { repositories: [named, adapterOf()], faults: elsewhere }
    )
  })

  it.live("does not block other readers while its tensors are hashed", () => {
    const large = adapterOf({ rank: 64 })
    const many = 8
    let hashing = 0
    const all = Deferred.makeUnsafe<void>()
    return withHub(
      (hub) =>
        Effect.gen(function* () {
          for (let at = 0; at < many; at++) yield* Effect.forkChild(hub.inspect({ repo: "odd/adapter" }, none))
          yield* Deferred.await(all)
          assert.strictEqual((yield* hub.inspect({ repo: "odd/base", ref: second.id }, none)).commit as string, second.id)
        }),
      {
        repositories: [base, large],
        faults: ({ file, range }) => {
          if (file !== "adapter_model.safetensors" || range?.startsWith("bytes=0-") !== false) return undefined
          if (++hashing === many) Deferred.doneUnsafe(all, Effect.void)
          return { kind: "stall", after: 1 }
        }
      }
    )
  })

  it.live("lists the same files however much of it was read, and is hashed only on request", () => {
    const named = makeRepository({ name: "odd/base", commits: [{ title: "Template", files: { ...files("second"), "chat_template.jinja": "{{ messages }}" } }] })
    return withHub(
      (hub) =>
        Effect.gen(function* () {
          const few = yield* hub.inspect({ repo: "odd/adapter" }, none, "few")
          const all = yield* hub.inspect({ repo: "odd/adapter", hash: false }, none)
          assert.deepStrictEqual(few.files, all.files)
          assert.include(
            all.files.map(({ path }) => path),
            "chat_template.jinja"
          )
          assert.deepStrictEqual([few.adapter?.template, all.adapter?.template, all.adapter?.content_hash], ["base", "file", null])
        }),
      { repositories: [named, adapterOf({}, { "chat_template.jinja": "{{ messages[0].content }}" })], faults: elsewhere }
    )
  })

  it.live("is refused with the reason of its base, and the message names both", () =>
    Effect.gen(function* () {
      const gated = makeRepository({ name: "odd/base", gated: true, commits: [{ title: "Gated", files: files("second") }] })
      const python = { ...files("second"), "config.json": JSON.stringify({ auto_map: { AutoModel: "x.Y" } }) }
      const code = makeRepository({ name: "odd/base", commits: [{ title: "Python", files: python }] })
      const nested = makeRepository({ name: "odd/base", commits: [{ title: "Nested", files: Object.fromEntries(makeTinyAdapter(options)) }] })
      const cases: ReadonlyArray<readonly [string, ReadonlyArray<SampleRepository>, Partial<TinyAdapterOptions>, string, RegExp]> = [
        ["gated", [gated], {}, "no_hub_connection", /odd\/base is gated/],
        ["absent", [], {}, "repository_not_found", /no repository odd\/base/],
        ["without that revision", [base], { revision: "v9" }, "revision_not_found", /odd\/base has no branch, tag or commit v9/],
        ["with Python", [code], {}, "remote_code_required", /auto_map/],
        ["an adapter itself", [nested], {}, "unsupported_format", /odd\/base is an adapter itself/],
        [
          "a folder",
          [base],
          { base: "/home/me/model" },
          "unsupported_format",
          /by a path on the machine where the adapter was made \(\/home\/me\/model\), not by a repository of the hub\.$/
        ],
        ["not named", [base], { base: "" }, "unsupported_format", /names no base model: base_model_name_or_path of its adapter_config\.json is empty\.$/]
      ]
      for (const [name, repositories, changed, code, words] of cases) {
        const refusal = yield* withHub((hub) => refusalOf(hub.inspect({ repo: "odd/adapter" }, none, "few")), {
          repositories: [...repositories, adapterOf(changed)]
        })
        assert.strictEqual(refusal.code, code, name)
        assert.match(refusal.message, words, name)
        assert.match(refusal.message, /odd\/adapter is a LoRA adapter of rank 8 \(0\.\d MiB\)/, name)
      }
      const shown = yield* withHub((hub) => hub.inspect({ repo: "odd/adapter" }, token, "few"), { repositories: [gated, adapterOf()] })
      assert.isTrue(shown.gated)
    })
  )

  it.live("is accepted with the layers that it names, as PEFT saves it, and without restriction", () =>
    Effect.gen(function* () {
      const part = (changed: Readonly<Record<string, unknown>>) =>
        withTensors((tensors) => tensors.filter(({ name }) => /layers\.[01]\./.test(name)), { config: changed })
      const taken = [
        ...[
          [0, 1],
          [1, 0, 2]
        ].map((layers_to_transform) => part({ layers_to_transform, layers_pattern: ["layers"] })),
        part({ layers_to_transform: [0, 1] }),
        adapterOf({ config: { layers_to_transform: [] } }),
        // PEFT applies this restriction neither to a pattern nor to a full module name.
        adapterOf({ config: { layers_to_transform: [0], target_modules: ".*_proj" } })
      ]
      for (const adapter of taken) {
        const facts = yield* withHub((hub) => hub.inspect({ repo: "odd/adapter" }, none, "few"), { repositories: [base, adapter] })
        assert.strictEqual(facts.adapter?.rank, 8)
      }
    })
  )

  const config = (changed: Readonly<Record<string, unknown>>) => adapterOf({ config: changed })
  const rename = (from: RegExp, to: string) => withTensors((tensors) => tensors.map((tensor) => ({ ...tensor, name: tensor.name.replace(from, to) })))
  const refused: ReadonlyArray<readonly [name: string, adapter: SampleRepository, words: RegExp]> = [
    ["another kind", config({ peft_type: "PROMPT_TUNING" }), /PROMPT_TUNING; only LoRA/],
    ["no kind", config({ peft_type: null }), /only LoRA/],
    ["another task", config({ task_type: "SEQ_CLS" }), /SEQ_CLS/],
    ["DoRA", config({ use_dora: true }), /DoRA \(use_dora\)/],
    ["whole modules", config({ modules_to_save: ["lm_head"] }), /modules_to_save/],
    ["biases", config({ bias: "lora_only" }), /biases \(bias\)/],
    ["biases of LoRA", config({ lora_bias: true }), /lora_bias/],
    ["tokens of its own", config({ trainable_token_indices: [1] }), /trainable_token_indices/],
    ["parameters", config({ target_parameters: ["mlp.experts.gate_up_proj"] }), /target_parameters/],
    ["PiSSA", config({ init_lora_weights: "pissa_niter_16" }), /init_lora_weights pissa_niter_16/],
    ["repeated layers", config({ layer_replication: [[0, 2]] }), /layer_replication/],
    ["transposed", config({ fan_in_fan_out: true }), /fan_in_fan_out/],
    ["something new", config({ use_something: { a: 1 } }), /sets use_something/],
    ["no rank", config({ r: 0 }), /json has 0 for r, which must be a whole number from 1/],
    ["no alpha", config({ lora_alpha: null }), /json lacks lora_alpha, which must be a number above 0/],
    ["an alpha that turns it around", config({ lora_alpha: -16 }), /json has -16 for lora_alpha, which must be a number above 0/],
    ["no targets", config({ target_modules: [] }), /json has \[\] for target_modules, which must be a string, or a list of 1/],
    ["another rank than stated", config({ r: 16 }), /lora_A\.weight is \[8, 256\]; adapter_config\.json states the rank 16/],
    ["a rank by pattern", config({ rank_pattern: { "layers.2.self_attn.q_proj": 4 } }), /layers\.2\.self_attn\.q_proj\.lora_A\.weight is \[8, 128\].*rank 4/],
    ["targets that are not named", config({ target_modules: ["q_proj", "v_proj", "o_proj"] }), /adapt down_proj, which is not in target_modules/],
    [
      "layers that are not named",
      config({ layers_to_transform: [0, 1] }),
      /layers\.2\..* adapts layer 2; layers_to_transform lists only 0, 1, and engines ignore that setting\.$/
    ],
    ["all layers but one", config({ layers_to_transform: 3, layers_pattern: "layers" }), /adapts layer 0; layers_to_transform lists only 3/],
    ["layers beyond the base", rename(/layers\.3/, "layers.4"), /layers\.4\..*odd\/base does not have/],
    ["a module of another family", rename(/q_proj/, "qkv"), /does not have/],
    ["no prefix", rename(/^base_model\.model\./, ""), /is not half of a low-rank pair/],
    [
      "a magnitude",
      rename(/layers\.0\.self_attn\.q_proj\.lora_A\.weight/, "layers.0.self_attn.q_proj.lora_magnitude_vector"),
      /lora_magnitude_vector is not half/
    ],
    ["embeddings", rename(/model\.layers\.0\.self_attn\.q_proj\.lora_A\.weight/, "model.embed_tokens.lora_embedding_A"), /changes the embeddings/],
    ["half a pair", withTensors((tensors) => tensors.slice(1)), /has no lora_A/],
    ["wider than the base", withTensors((tensors) => tensors.map((tensor) => widen(tensor))), /is \[8, 160\]; in odd\/base the module has 128 input values/],
    ["pickled", adapterOf({}, { "adapter_model.safetensors": undefined, "adapter_model.bin": Buffer.from("x") }), /adapter_model\.bin.*can run code/],
    ["a header that lies", adapterOf({}, { "adapter_model.safetensors": new Uint8Array(64) }), /header/]
  ]
  it.live("is refused for everything that no engine can apply or that its base does not have, by name", () =>
    Effect.gen(function* () {
      for (const [name, adapter, words] of refused) {
        const { code, message, remedy } = yield* withHub((hub) => refusalOf(hub.inspect({ repo: "odd/adapter" }, none, "few")), {
          repositories: [base, adapter]
        })
        assert.strictEqual(code, "unsupported_format", name)
        assert.match(remedy, /a LoRA adapter in the format of PEFT .* or a repository with the adapter merged into its base\.$/, name)
        assert.match(message, words, name)
      }
    })
  )
})

/** An input of 160 values, but the base has 128. */
const widen = (tensor: NamedTensor): NamedTensor =>
  /q_proj\.lora_A/.test(tensor.name) ? { ...tensor, shape: [8, 160], values: new Float32Array(8 * 160) } : tensor
