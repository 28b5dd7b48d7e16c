import { assert, describe, it } from "@effect/vitest"
import type { HubRefusal, HubUnavailable } from "@seatrial/hub"
import { Effect, Option, Redacted } from "effect"
import { giantWeightsBytes } from "../../src/hub/giant.ts"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { SampleHub, sampleHubToken } from "../../src/hub/SampleHub.ts"
import { type CommitContent, makeRepository } from "../../src/hub/SampleRepository.ts"
import { sampleRepositories } from "../../src/hub/sampleRepositories.ts"
import { safetensors, tinyConfig, tinyFiles, tinyWeightsBytes } from "../hub/tinyFiles.ts"
import { withHub } from "../hub/withHub.ts"

const tiny = sampleRepositories().find(({ name }) => name === "seatrial/tiny-chat")
const small = makeRepository({ name: "odd/small", commits: [{ title: "Small", files: tinyFiles(1) }] })
const none = Option.none<Redacted.Redacted<string>>()
const token = Option.some(Redacted.make(sampleHubToken))

const refusalOf = (effect: Effect.Effect<unknown, HubRefusal | HubUnavailable>) =>
  Effect.flatMap(Effect.flip(effect), (error) => (error._tag === "HubRefusal" ? Effect.succeed(error) : Effect.die(error)))

/** The configuration of a tokenizer with two templates, one of them for tools. */
const named = (forTools: string) =>
  JSON.stringify({
    chat_template: [
      { name: "default", template: "{{ messages }}" },
      { name: "tool_use", template: forTools }
    ]
  })

const repository = (files: CommitContent["files"]) => makeRepository({ name: "odd/model", commits: [{ title: "Odd", files }] })

describe("inspect", () => {
  it.live("pins the default branch, a tag and a short commit hash to full commits", () =>
    withHub((hub) =>
      Effect.gen(function* () {
        const [newest, oldest] = tiny?.commits ?? []
        const main = yield* hub.inspect({ repo: "seatrial/tiny-chat" }, none)
        const tag = yield* hub.inspect({ repo: "seatrial/tiny-chat", ref: "v1" }, none)
        const short = yield* hub.inspect({ repo: "seatrial/tiny-chat", ref: oldest?.id.slice(0, 8) }, none)
        const full = yield* hub.inspect({ repo: "seatrial/tiny-chat", ref: newest?.id }, none)
        assert.deepStrictEqual(
          [main, tag, short, full].map(({ commit }) => commit as string),
          [newest?.id, oldest?.id, oldest?.id, newest?.id]
        )
        assert.deepStrictEqual([main.ref, tag.ref], ["main", "v1"])
      })
    )
  )

  it.live("returns what serving needs, in few requests that all name the commit except the first", () =>
    withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const facts = yield* hub.inspect({ repo: "odd/small" }, none)
          assert.strictEqual(facts.weights_bytes, tinyWeightsBytes)
          assert.strictEqual(facts.parameters, tinyWeightsBytes / 4)
          assert.strictEqual(facts.license, "apache-2.0")
          assert.strictEqual(facts.chat_template, "{{ messages[0].content }}")
          assert.deepInclude(facts.config, {
            architecture: "LlamaForCausalLM",
            model_type: "llama",
            num_layers: 2,
            hidden_size: 64,
            num_attention_heads: 4,
            num_kv_heads: 2,
            head_dim: 16,
            vocab_size: 512,
            native_context: 512,
            sliding_window: null,
            dtype: "float32",
            quantization: "none"
          })
          assert.deepStrictEqual(
            facts.files.map(({ path }) => path),
            ["config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"]
          )
          assert.isAtMost(asked.length, 12)
          for (const { path } of asked.slice(1)) assert.include(path, facts.commit)
        }),
      { repositories: [small] }
    )
  )

  it.live("determines the exact size of the giant's weights from headers, with several pages of files", () =>
    withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const facts = yield* hub.inspect({ repo: "seatrial/giant-70b" }, none)
          assert.strictEqual(facts.weights_bytes, giantWeightsBytes)
          assert.strictEqual(facts.weights_bytes, 141_107_412_992)
          assert.strictEqual(facts.parameters, 70_553_706_496)
          assert.strictEqual(facts.config.num_kv_heads, 8)
          const shards = facts.files.filter(({ path }) => path.endsWith(".safetensors"))
          assert.isAbove(shards.length, 20)
          for (const { range, file } of asked) if (file?.endsWith(".safetensors")) assert.strictEqual(range, "bytes=0-131071")
          assert.isAtMost(asked.length, shards.length + 12)
        }),
      { pageSize: 10 }
    )
  )

  it.live("refuses each kind of unsupported repository by its code, with a remedy", () =>
    withHub((hub) =>
      Effect.gen(function* () {
        const cases = [
          [{ repo: "seatrial/absent" }, none, "repository_not_found"],
          [{ repo: "../../api" }, none, "repository_not_found"],
          [{ repo: "seatrial/tiny-chat", ref: "absent" }, none, "revision_not_found"],
          [{ repo: "seatrial/tiny-chat-gated" }, none, "no_hub_connection"],
          [{ repo: "seatrial/tiny-chat-gated" }, Option.some(Redacted.make("hf_another")), "access_required"],
          [{ repo: "seatrial/tiny-chat-remote-code" }, none, "remote_code_required"],
          [{ repo: "seatrial/tiny-chat-pickled" }, none, "unsupported_format"]
        ] as const
        for (const [source, as, code] of cases) {
          const refusal = yield* refusalOf(hub.inspect(source, as))
          assert.strictEqual(refusal.code, code, source.repo)
          assert.isAbove(refusal.remedy.length, 10)
          assert.notInclude(refusal.message, "127.0.0.1")
        }
        const gated = yield* hub.inspect({ repo: "seatrial/tiny-chat-gated" }, token)
        assert.isTrue(gated.gated)
      })
    )
  )

  it.live("follows redirects to another origin without the token", () => {
    const inspectBehind = (gated: boolean) => {
      const repositories = [makeRepository({ name: "odd/small", gated, commits: [{ title: "Small", files: tinyFiles(1) }] })]
      return Effect.gen(function* () {
        const storage = yield* SampleHub
        return yield* withHub((hub) => hub.inspect({ repo: "odd/small" }, token), {
          repositories,
          faults: ({ file, path }) => (file === null ? undefined : { kind: "status", status: 302, headers: { location: `${storage.address}${path}` } })
        })
      }).pipe(Effect.provide(SampleHub.layer({ port: 0, repositories })))
    }
    return Effect.gen(function* () {
      assert.strictEqual((yield* inspectBehind(false)).weights_bytes, tinyWeightsBytes)
      const error = yield* Effect.flip(inspectBehind(true))
      assert.strictEqual(error._tag === "HubRefusal" && error.code, "access_required")
    })
  })

  it.live("shows a private repository only with the token", () =>
    withHub(
      (hub) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* refusalOf(hub.inspect({ repo: "odd/private" }, none))).code, "repository_not_found")
          assert.strictEqual((yield* hub.inspect({ repo: "odd/private" }, token)).weights_bytes, tinyWeightsBytes)
        }),
      { repositories: [makeRepository({ name: "odd/private", private: true, commits: [{ title: "Private", files: tinyFiles(1) }] })] }
    )
  )

  it.live("refuses a license on the installation's list", () =>
    withHub(
      (hub) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* refusalOf(hub.inspect({ repo: "seatrial/giant-70b" }, none))).code, "license_refused")
          yield* hub.inspect({ repo: "seatrial/tiny-chat" }, none)
        }),
      { settings: { HUB_DENIED_LICENSES: "cc-by-nc-4.0, Llama3.1" } }
    )
  )

  const good = tinyFiles(1)
  const without = (path: string) => Object.fromEntries(Object.entries(good).filter(([name]) => name !== path))
  const tensor = (begin: number, end: number) => ({ dtype: "F32", shape: [(end - begin) / 4], data_offsets: [begin, end] })
  const index = (weight_map: Readonly<Record<string, string>>) => JSON.stringify({ metadata: {}, weight_map })
  const one = safetensors({ a: tensor(0, 8) }, 8)
  const tokenizerOf = (members: object) => JSON.stringify({ added_tokens: [], model: { type: "BPE", vocab: {}, merges: [] }, ...members })
  it.live.each([
    ["no tokenizer", without("tokenizer.json"), "unsupported_format"],
    ["no configuration", without("config.json"), "unsupported_format"],
    ["a tokenizer that is no JSON", { ...good, "tokenizer.json": "{not json" }, "unsupported_format"],
    ["a tokenizer without a model", { ...good, "tokenizer.json": "{}" }, "unsupported_format"],
    [
      "a vocabulary beyond the embedding",
      { ...good, "tokenizer.json": tokenizerOf({ model: { vocab: { a: 511, b: 512 }, merges: [] } }) },
      "unsupported_format"
    ],
    ["a tokenizer's model that no engine knows", { ...good, "tokenizer.json": tokenizerOf({ model: { type: "Odd", vocab: {} } }) }, "unsupported_format"],
    ["a pre-tokenizer that no engine knows", { ...good, "tokenizer.json": tokenizerOf({ pre_tokenizer: { type: "Odd" } }) }, "unsupported_format"],
    [
      "a step within a sequence that no engine knows",
      {
        ...good,
        "tokenizer.json": tokenizerOf({ pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "Digits", individual_digits: true }, { type: "Odd" }] } })
      },
      "unsupported_format"
    ],
    ["a vocabulary without its merges", { ...good, "tokenizer.json": tokenizerOf({ model: { type: "BPE", vocab: {} } }) }, "unsupported_format"],
    ["added tokens that nothing lists", { ...good, "tokenizer.json": tokenizerOf({ added_tokens: undefined }) }, "unsupported_format"],
    ["no end of a turn anywhere", { ...good, "config.json": JSON.stringify({ ...tinyConfig, eos_token_id: null }) }, "unsupported_format"],
    ["an end beyond the vocabulary", { ...good, "config.json": JSON.stringify({ ...tinyConfig, eos_token_id: [2, 512] }) }, "unsupported_format"],
    ["an end below the vocabulary", { ...good, "generation_config.json": JSON.stringify({ eos_token_id: -1 }) }, "unsupported_format"],
    ["answers of no token at most", { ...good, "generation_config.json": JSON.stringify({ max_new_tokens: 0 }) }, "unsupported_format"],
    ["an early stop that is none", { ...good, "generation_config.json": JSON.stringify({ early_stopping: "soon" }) }, "unsupported_format"],
    ["a cache that nobody knows", { ...good, "generation_config.json": JSON.stringify({ cache_implementation: "odd" }) }, "unsupported_format"],
    [
      "a chat template beside one for tools that is longer than an argument may be",
      { ...good, "tokenizer_config.json": named("{{ tools }}").replace("{{ messages }}", `{{ messages }}${"x".repeat(120_000)}`) },
      "unsupported_format"
    ],
    ["an end that is no id", { ...good, "config.json": JSON.stringify({ ...tinyConfig, eos_token_id: "</s>" }) }, "unsupported_format"],
    ["a chat template that is a number", { ...good, "tokenizer_config.json": JSON.stringify({ chat_template: 5 }) }, "unsupported_format"],
    ["a chat template that is a list of numbers", { ...good, "tokenizer_config.json": JSON.stringify({ chat_template: [5] }) }, "unsupported_format"],
    ["a width that is not that of its weights", { ...good, "config.json": JSON.stringify({ ...tinyConfig, hidden_size: 128 }) }, "unsupported_format"],
    ["a configuration that is no JSON", { ...good, "config.json": "{" }, "unsupported_format"],
    ["a configuration that is a list", { ...good, "config.json": "[]" }, "unsupported_format"],
    ["a configuration nested without end", { ...good, "config.json": `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}` }, "unsupported_format"],
    ["a configuration that names a key twice", { ...good, "config.json": '{"architectures":["A"],"architectures":["B"]}' }, "unsupported_format"],
    ["a configuration of eleven million bytes", { ...good, "config.json": JSON.stringify({ a: "x".repeat(11_000_000) }) }, "unsupported_format"],
    ["layers below zero", { ...good, "config.json": JSON.stringify({ ...tinyConfig, num_hidden_layers: -1 }) }, "unsupported_format"],
    ["no layers", { ...good, "config.json": JSON.stringify({ ...tinyConfig, num_hidden_layers: null }) }, "unsupported_architecture"],
    ["an architecture that is no name", { ...good, "config.json": JSON.stringify({ ...tinyConfig, architectures: ["../x"] }) }, "unsupported_architecture"],
    [
      "code asked for by the tokenizer",
      { ...good, "tokenizer_config.json": JSON.stringify({ auto_map: { AutoTokenizer: ["a.b", null] } }) },
      "remote_code_required"
    ],
    [
      "code asked for in a nested configuration",
      { ...good, "config.json": JSON.stringify({ ...tinyConfig, text_config: { ...tinyConfig, auto_map: {} } }) },
      "remote_code_required"
    ],
    ["a path out of the repository", { ...good, "..\\evil.json": "{}" }, "unsupported_format"],
    ["GGUF only", { ...without("model.safetensors"), "model.gguf": "GGUF" }, "unsupported_format"],
    ["a weight file without a header", { ...good, "model.safetensors": new Uint8Array(7) }, "unsupported_format"],
    ["an empty weight file", { ...good, "model.safetensors": new Uint8Array() }, "unsupported_format"],
    ["a header longer than the file", { ...good, "model.safetensors": new Uint8Array(64).fill(255) }, "unsupported_format"],
    ["overlapping tensors", { ...good, "model.safetensors": safetensors({ a: tensor(0, 8), b: tensor(4, 12) }, 12) }, "unsupported_format"],
    ["a gap between tensors", { ...good, "model.safetensors": safetensors({ a: tensor(0, 8), b: tensor(12, 16) }, 16) }, "unsupported_format"],
    ["bytes behind the tensors", { ...good, "model.safetensors": safetensors({ a: tensor(0, 8) }, 12) }, "unsupported_format"],
    ["a shape that lies", { ...good, "model.safetensors": safetensors({ a: { ...tensor(0, 8), shape: [2, 2 ** 40] } }, 8) }, "unsupported_format"],
    ["an index that names an absent file", { ...good, "model.safetensors.index.json": index({ a: "b.safetensors" }) }, "unsupported_format"],
    ["an index that leads to itself", { ...good, "model.safetensors.index.json": index({ a: "model.safetensors.index.json" }) }, "unsupported_format"],
    ["a symbolic link for a configuration", { ...good, "config.json": "../../../../etc/passwd" }, "unsupported_format"],
    ["a symbolic link for weights", { ...good, "model.safetensors": "/root/.cache/huggingface/token" }, "unsupported_format"],
    ["a folder that leads out of the repository", { ...good, "a/../../evil.json": "{}" }, "unsupported_format"],
    ["a file of git's own", { ...good, ".git/config": "" }, "unsupported_format"],
    [
      "five weight files and no index",
      { ...without("model.safetensors"), ...Object.fromEntries([..."abcde"].map((name) => [`${name}.safetensors`, one])) },
      "unsupported_format"
    ],
    ["an index that leaves the repository", { ...good, "model.safetensors.index.json": index({ a: "../model.safetensors" }) }, "unsupported_format"],
    [
      "an index with a tensor that no file has",
      { ...good, "model.safetensors": one, "model.safetensors.index.json": index({ b: "model.safetensors" }) },
      "unsupported_format"
    ],
    [
      "a tensor in two shards",
      { ...good, "a.safetensors": one, "b.safetensors": one, "model.safetensors.index.json": index({ a: "a.safetensors", c: "b.safetensors" }) },
      "unsupported_format"
    ]
  ] as const)("refuses %s", ([name, files, code]) =>
    withHub(
      (hub) =>
        Effect.map(refusalOf(hub.inspect({ repo: "odd/model" }, none)), (refusal) => assert.strictEqual(refusal.code, code, `${name}: ${refusal.message}`)),
      {
        repositories: [repository(files)]
      }
    )
  )

  it.live("accepts end tokens that the vocabulary has, and added tokens without a row, as in real models", () => {
    const files = {
      ...good,
      "config.json": JSON.stringify({ ...tinyConfig, eos_token_id: [0, 511] }),
      "generation_config.json": JSON.stringify({ eos_token_id: 511 }),
      "tokenizer.json": tokenizerOf({
        model: { vocab: { a: 511, b: 513 }, merges: [] },
        added_tokens: [512, 513].map((id) => ({ id, content: `<${id}>`, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true })),
        pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true }
      }),
      "tokenizer_config.json": JSON.stringify({ chat_template: [{ name: "default", template: "{{ messages }}" }] })
    }
    return withHub((hub) => Effect.map(hub.inspect({ repo: "odd/model" }, none), ({ chat_template }) => assert.strictEqual(chat_template, "{{ messages }}")), {
      repositories: [repository(files)]
    })
  })

  it.live.each<[given: object, expected: object]>([
    [{ temperature: 0.6, top_p: 0.95, top_k: 20 }, { sampling: { temperature: 0.6, top_p: 0.95, top_k: 20 } }],
    [
      { temperature: 3, top_p: 0.95 },
      { sampling: { top_p: 0.95 }, refused_sampling: true }
    ],
    [{ top_p: 0 }, { sampling: {}, refused_sampling: true }],
    [{ temperature: "0.6" }, { sampling: {}, refused_sampling: true }],
    [{ presence_penalty: 3 }, { sampling: {}, refused_sampling: true }],
    [{ temperature: null, do_sample: true, max_new_tokens: 2_048, early_stopping: false, cache_implementation: "hybrid" }, { sampling: {} }]
  ])("takes generation settings, and tells those apart that no engine takes: %j", ([given, expected]) =>
    withHub(
      (hub) =>
        Effect.map(hub.inspect({ repo: "odd/model" }, none), ({ refused_sampling, sampling }) =>
          assert.deepStrictEqual({ sampling, ...(refused_sampling === undefined ? {} : { refused_sampling }) }, expected)
        ),
      { repositories: [repository({ ...good, "generation_config.json": JSON.stringify(given) })] }
    )
  )

  it.live("accepts a model without a chat template, which serves completions", () =>
    withHub((hub) => Effect.map(hub.inspect({ repo: "odd/model" }, none), ({ chat_template }) => assert.isNull(chat_template)), {
      repositories: [repository({ ...good, "tokenizer_config.json": "{}" })]
    })
  )

  it.live.each([
    ["no processor, whose it would be", {}, null],
    ["a processor's configuration", { "processor_config.json": "{}" }, "{{ messages }}"],
    ["a processor that the tokenizer's configuration names", { "tokenizer_config.json": '{"processor_class":"OddProcessor"}' }, "{{ messages }}"]
  ] as const)("accepts chat_template.json as engines do: next to %s", ([, beside, expected]) =>
    withHub((hub) => Effect.map(hub.inspect({ repo: "odd/model" }, none), ({ chat_template }) => assert.strictEqual(chat_template, expected)), {
      repositories: [repository({ ...good, "tokenizer_config.json": "{}", "chat_template.json": '{"chat_template":"{{ messages }}"}', ...beside })]
    })
  )

  it.live.each([
    ["none beside the only one", {}, undefined],
    ["one for tools by its name", { "tokenizer_config.json": named("{{ tools }}") }, true],
    ["the same for tools by its name", { "tokenizer_config.json": named("{{ messages }}") }, undefined],
    ["an empty one for tools, of which nothing would be made", { "tokenizer_config.json": named("") }, true],
    ["one for tools, which a file stands for", { "tokenizer_config.json": named("{{ tools }}"), "chat_template.jinja": "{{ messages }}" }, undefined],
    ["the tokenizer's beside the processor's", { "chat_template.json": '{"chat_template":"{{ messages[0] }}"}', "processor_config.json": "{}" }, true],
    [
      "none for tools beside the processor's",
      { "tokenizer_config.json": "{}", "chat_template.json": '{"chat_template":"{{ messages }}"}', "processor_config.json": "{}" },
      true
    ]
  ] as const)("tells whether requests with tools may get another chat template: %s", ([, files, expected]) =>
    withHub((hub) => Effect.map(hub.inspect({ repo: "odd/model" }, none), ({ other_template }) => assert.strictEqual(other_template, expected)), {
      repositories: [repository({ ...good, "tokenizer_config.json": '{"chat_template":"{{ messages }}"}', ...files })]
    })
  )

  it.live.each([
    ["in a folder", { "weights/model.safetensors": good["model.safetensors"] }, "it has no weights in its outermost folder."],
    [
      "by a name with spaces",
      { "a model.safetensors": good["model.safetensors"] },
      "it has only safetensors files with other names than engines look for (a model.safetensors)."
    ],
    [
      "as its makers lay them out",
      { "consolidated.safetensors": good["model.safetensors"] },
      "it has only safetensors files with other names than engines look for (consolidated.safetensors)."
    ]
  ] as const)("says of weights %s what there is", ([, files, said]) => {
    const { "model.safetensors": _, ...rest } = good
    return withHub((hub) => Effect.map(refusalOf(hub.inspect({ repo: "odd/model" }, none)), ({ message }) => assert.isTrue(message.endsWith(said), message)), {
      repositories: [repository({ ...rest, ...files })]
    })
  })

  it.live("reads the quantization that ModelOpt writes into a separate file", () =>
    withHub((hub) => Effect.map(hub.inspect({ repo: "odd/model" }, none, "few"), ({ config }) => assert.strictEqual(config.quantization, "modelopt")), {
      repositories: [repository({ ...good, "hf_quant_config.json": JSON.stringify({ producer: { name: "modelopt" }, quantization: { quant_algo: "FP8" } }) })]
    })
  )

  it.live("reads a header that is longer than the first read", () => {
    const count = 3_000
    const header = Object.fromEntries(Array.from({ length: count }, (_, at) => [`layer.${at}.weight`, tensor(at * 4, at * 4 + 4)]))
    return withHub((hub) => Effect.map(hub.inspect({ repo: "odd/model" }, none), ({ parameters }) => assert.strictEqual(parameters, count)), {
      repositories: [repository({ ...good, "model.safetensors": safetensors(header, count * 4) })]
    })
  })

  it.live("retries temporary faults of the hub, and returns a retry time for permanent ones", () =>
    Effect.gen(function* () {
      const flaky = withHub((hub) => hub.inspect({ repo: "odd/small" }, none), {
        repositories: [small],
        faults: ({ count }) => (count <= 2 ? { kind: "status", status: 503 } : undefined)
      })
      assert.strictEqual((yield* flaky).weights_bytes, tinyWeightsBytes)
      const limited = withHub((hub) => Effect.flip(hub.inspect({ repo: "seatrial/tiny-chat" }, none)), {
        faults: () => ({ kind: "status", status: 429, headers: { "retry-after": "7" } })
      })
      const error = yield* limited
      assert.strictEqual(error._tag, "HubUnavailable")
      if (error._tag === "HubUnavailable") assert.strictEqual(error.retryAfter, 7000)
    })
  )

  it.live("follows no redirect to a private address, unless the installation allows the name", () =>
    Effect.gen(function* () {
      let port = ""
      const inspect = (settings: Readonly<Record<string, string>>) =>
        withHub(
          (hub, _, address) => {
            port = new URL(address).port
            return hub.inspect({ repo: "odd/small" }, none)
          },
          {
            repositories: [small],
            // After one redirect the same hub answers.
            faults: ({ count, path }) =>
              count === 1 && path.includes("/resolve/") ? { kind: "status", status: 302, headers: { location: `http://localhost:${port}${path}` } } : undefined,
            settings: { HUB_RETRIES: "0", ...settings }
          }
        )
      const error = yield* Effect.flip(inspect({}))
      assert.strictEqual(error._tag, "HubUnavailable")
      assert.strictEqual((yield* inspect({ HUB_REDIRECT_HOSTS: "localhost" })).weights_bytes, tinyWeightsBytes)
    })
  )

  it.live("repeats the requests of a download as long as a download does, and as late as the hub demands", () =>
    Effect.gen(function* () {
      const inspect = (faults: (request: HubRequest) => HubFault | undefined) =>
        withHub((hub) => hub.inspect({ repo: "odd/small", patience: "long" }, none), {
          repositories: [small],
          faults,
          settings: { HUB_RETRY_DELAY: "1 millis" }
        })
      const { weights_bytes } = yield* inspect(({ count }) => (count <= 8 ? { kind: "reset" } : undefined))
      assert.strictEqual(weights_bytes, tinyWeightsBytes)
      // Longer than any pause of the client.
      yield* inspect(({ count }) => (count === 1 ? { kind: "status", status: 429, headers: { "retry-after": "0.05" } } : undefined))
      const never = yield* Effect.flip(inspect(() => ({ kind: "status", status: 503, headers: { "retry-after": "0" } })))
      assert.strictEqual(never._tag, "HubUnavailable")
    })
  )

  it.live.each([
    ["does not answer at all", () => ({ kind: "stall", after: 10 })],
    ["ends its answers early", () => ({ kind: "cut", after: 10 })],
    ["sends other bytes than the commit's", () => ({ kind: "corrupt", offset: 1 })],
    ["sends another range than was asked for", () => ({ kind: "shift", by: 1 })]
  ] as const satisfies ReadonlyArray<readonly [string, () => HubFault]>)("reports a hub that %s as unavailable", ([, fault]) =>
    withHub((hub) => Effect.map(Effect.flip(hub.inspect({ repo: "seatrial/tiny-chat" }, none)), (error) => assert.strictEqual(error._tag, "HubUnavailable")), {
      faults: ({ file }) => (file === "config.json" ? fault() : undefined),
      settings: { HUB_TIMEOUT: "100 millis" }
    })
  )

  it.live("reports a hub that never answers as unavailable", () =>
    withHub((hub) => Effect.map(Effect.flip(hub.inspect({ repo: "seatrial/tiny-chat" }, none)), (error) => assert.strictEqual(error._tag, "HubUnavailable")), {
      settings: { HF_ENDPOINT: "http://127.0.0.1:9" }
    })
  )
})
