import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Commit, decideServing, type HostClass, type RepositoryFacts, type ServingRequest } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { parseModelConfig } from "@seatrial/hub"
import { Result, Schema } from "effect"

const Row = Schema.Struct({
  model: Schema.String,
  config: Schema.Record(Schema.String, Schema.Unknown),
  expected: Schema.Struct({ weights_bytes: Schema.Int, parameters: Schema.Int })
})
const folder = join(import.meta.dirname, "../../packages/hub/test")
const rows = Schema.decodeUnknownSync(Schema.Array(Row))(JSON.parse(readFileSync(join(folder, "realModels.json"), "utf8")))

const runtimes = [
  { runtime: "vllm", image: "vllm" },
  { runtime: "sglang", image: "sglang" },
  { runtime: "reference", image: "reference" }
] as const
const classOf = (name: string, gpu_pool: string, gpu_count: number, gib: number): HostClass => ({
  name,
  runtimes,
  gpu_pool,
  gpu_count,
  gpu_memory_bytes: gib * 2 ** 30,
  price_per_gpu_hour_micros: String(gib),
  simulated: false
})
const hostClasses = [
  classOf("t4", "Tesla-T4", 1, 15),
  classOf("l4x3", "NVIDIA-L4", 3, 22),
  classOf("h100", "NVIDIA-H100-80GB-HBM3", 1, 80),
  classOf("h100x8", "NVIDIA-H100-80GB-HBM3", 8, 80)
]

const factsOf = ({ config, expected, model }: typeof Row.Type): RepositoryFacts => ({
  repo: "org/model",
  ref: model,
  commit: Commit.make("0123456789abcdef0123456789abcdef01234567"),
  license: null,
  gated: false,
  files: [],
  config: Result.getOrThrow(parseModelConfig(config, "BF16")),
  ...expected,
  chat_template: null
})

/** Requests that fail most often: too much, too little, the wrong GPU, the wrong runtime. */
const requests: ReadonlyArray<ServingRequest> = [
  {},
  { runtime: "reference", max_context: 4_096 },
  { runtime: "vllm", host_class: "t4", kv_cache_dtype: "fp8" },
  { runtime: "vllm", kv_cache_dtype: "fp8", yarn: { factor: 1.5 } },
  { runtime: "sglang", max_context: 180_000 },
  { runtime: "sglang", host_class: "l4x3", engine_flags: { quantization: "fp8", attention_backend: "fa3" } },
  {
    runtime: "vllm",
    host_class: "h100",
    max_context: 1_000_000,
    yarn: { factor: 64 },
    engine_flags: { attention_backend: "FLASHINFER", batch_invariant: true }
  }
]

describe("the settings in a preview of a public model", () => {
  it("are accepted by the next preview, both for derived and refused previews", () => {
    let instead = 0
    for (const row of rows) {
      const facts = factsOf(row)
      const ask = (request: ServingRequest) => decideServing({ facts, ref: null, request, hostClasses, engines }).preview
      for (const request of requests) {
        const preview = ask(request)
        const serving = preview.kind === "derived" ? preview.serving : preview.remedy.serving
        if (serving === null) continue
        if (preview.kind === "refused") instead++
        const again = ask(serving)
        const what = `${row.model} ${JSON.stringify(request)} ${JSON.stringify(serving)}`
        assert.strictEqual(again.kind, "derived", `${what}: ${again.kind === "refused" ? again.reason.message : ""}`)
        assert.deepStrictEqual(again.kind === "derived" ? again.serving : null, serving, what)
      }
    }
    assert.isAbove(instead, 100)
  })
})
