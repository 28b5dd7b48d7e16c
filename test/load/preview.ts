import { PgClient } from "@effect/sql-pg"
import type { HostClass } from "@seatrial/domain"
import { makeRepository, SampleHub } from "@seatrial/local"
import { HostClasses } from "@seatrial/store"
import { Context, Effect, Layer, Schema } from "effect"
import { startServer } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"
import { table } from "./figures.ts"
import { BenchError, type Program } from "./Program.ts"

/** Milliseconds that the hub waits before each response. */
const latency = 50
const rounds = 60

const hostClass: HostClass = {
  name: "bench",
  runtimes: [{ runtime: "reference", image: "reference" }],
  gpu_pool: "bench",
  gpu_count: 8,
  gpu_memory_bytes: 2 ** 40,
  price_per_gpu_hour_micros: "1",
  simulated: true
}

const config = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 4096,
  intermediate_size: 14_336,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  max_position_embeddings: 8192,
  vocab_size: 32_000,
  torch_dtype: "bfloat16",
  eos_token_id: 2
}

const perLayer = [
  ["input_layernorm", [4096]],
  ["self_attn.q_proj", [4096, 4096]],
  ["self_attn.k_proj", [1024, 4096]],
  ["self_attn.v_proj", [1024, 4096]],
  ["self_attn.o_proj", [4096, 4096]],
  ["mlp.gate_proj", [14_336, 4096]],
  ["mlp.up_proj", [14_336, 4096]],
  ["mlp.down_proj", [4096, 14_336]],
  ["post_attention_layernorm", [4096]]
] as const

/** Tensors that a model has once. */
const once = [
  ["model.embed_tokens", [32_000, 4096]],
  ["model.norm", [4096]],
  ["lm_head", [32_000, 4096]]
] as const

/** A model with one file per layer. Only the headers of the files are real. */
const layered = (layers: number) => {
  const file = (layer: number) => `model-${String(layer + 1).padStart(5, "0")}-of-${String(layers).padStart(5, "0")}.safetensors`
  const weight_map: Record<string, string> = {}
  const shards = Array.from({ length: layers }, (_, layer) => {
    let end = 0
    const header: Record<string, unknown> = {}
    const own = perLayer.map(([name, shape]) => [`model.layers.${layer}.${name}`, shape] as const)
    for (const [name, shape] of layer === 0 ? [...once, ...own] : own) {
      const begin = end
      end += shape.reduce((product, side) => product * side, 2)
      header[`${name}.weight`] = { dtype: "BF16", shape, data_offsets: [begin, end] }
      weight_map[`${name}.weight`] = file(layer)
    }
    const json = Buffer.from(JSON.stringify(header))
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(json.length))
    return [file(layer), { head: Buffer.concat([length, json]), size: 8 + json.length + end }] as const
  })
  return makeRepository({
    name: `bench/layers-${layers}`,
    commits: [
      {
        title: "Weights",
        files: {
          "config.json": JSON.stringify({ ...config, num_hidden_layers: layers }),
          "chat_template.jinja": "{{ messages[0].content }}",
          "generation_config.json": "{}",
          "tokenizer.json": '{"added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}}',
          "tokenizer_config.json": "{}",
          ...Object.fromEntries(shards),
          "model.safetensors.index.json": JSON.stringify({ metadata: {}, weight_map })
        }
      }
    ]
  })
}

const decodeKind = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ kind: Schema.Literal("derived") })))

const ask = (server: Program, key: string, repo: string) =>
  Effect.tryPromise({
    try: async () => {
      const begun = performance.now()
      const answer = await fetch(`http://${server.host}:${server.port}/v1/deployment-previews`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ source: { kind: "model_hub", repo } })
      })
      const text = await answer.text()
      if (decodeKind(text)._tag === "None") throw new Error(text.slice(0, 500))
      return performance.now() - begun
    },
    catch: (error) => new BenchError({ message: `A preview of ${repo} failed: ${String(error)}` })
  })

export const preview: Benchmark = {
  name: "preview",
  title: "Preview a deployment",
  measure: Effect.fnUntraced(function* ({ own }) {
    const lab = yield* own
    let requests = 0
    const sizes = [1, 32, 163]
    const hub = Context.get(
      yield* Layer.build(
        SampleHub.layer({
          port: 0,
          latency,
          repositories: sizes.map(layered),
          faults: () => {
            requests++
            return undefined
          }
        })
      ),
      SampleHub
    )
    yield* Effect.flatMap(HostClasses, (classes) => classes.replaceAll([hostClass])).pipe(
      Effect.provide(HostClasses.layerSql.pipe(Layer.provide(Layer.succeed(PgClient.PgClient, lab.sql))))
    )
    const settings = { HF_ENDPOINT: hub.address, SERVER_PREVIEWS_PER_ORG: "1000000" }
    const forgetful = yield* startServer(lab, { ...settings, HUB_REMEMBER: "0 millis" })
    const remembering = yield* startServer(lab, settings)

    const measured = Effect.fnUntraced(function* (server: Program, files: number, what: string) {
      const repo = `bench/layers-${files}`
      yield* ask(server, lab.key, repo)
      requests = 0
      const times: Array<number> = []
      for (let round = 0; round < rounds; round++) times.push(yield* ask(server, lab.key, repo))
      times.sort((a, b) => a - b)
      const at = (share: number) => (times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN).toFixed(0)
      return [what, String(requests / rounds), `${at(0.5)} ms`, `${at(0.95)} ms`, `${at(1)} ms`]
    })
    const rows = []
    for (const files of sizes) rows.push(yield* measured(forgetful, files, `${files} weight ${files === 1 ? "file" : "files"}, not cached`))
    rows.push(yield* measured(remembering, 163, "163 weight files, remembered"))
    return `\`POST /v1/deployment-previews\` one after the other, ${rounds} each, of models on a sample hub that waits ${latency} ms before each answer. The hub, the server and Postgres are
processes of one machine. A preview may take 3 s at the 95th percentile and 12 requests to the hub.

${table(["Model", "requests to the hub", "median", "95th percentile", "longest"], rows)}`
  })
}
