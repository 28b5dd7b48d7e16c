import { assert, describe, it } from "@effect/vitest"
import { choicesOf, derivePreview, type HostClass, longestCheckedAnswer, type Runtime, type ServingRequest } from "@seatrial/domain"
import { llama8bConfig } from "../../../test/models/modelConfigs.ts"
import { renderFlags } from "../src/EngineFlag.ts"
import { engineFor, engines, engineWire } from "../src/index.ts"
import { vllmFlags } from "../src/vllm/flags.ts"
import { factsOf } from "./anyModel.ts"

const hostClass = (name: string, runtime: Runtime, price: string): HostClass => ({
  name,
  runtimes: [{ runtime, image: "i" }],
  gpu_pool: "NVIDIA-H100-80GB-HBM3",
  gpu_count: 1,
  gpu_memory_bytes: 85_000_000_000,
  price_per_gpu_hour_micros: price,
  simulated: false
})
const hostClasses = [hostClass("cheap", "vllm", "1"), hostClass("other", "sglang", "2")]

const preview = (architecture: string, request: ServingRequest) =>
  derivePreview({ facts: factsOf({ ...llama8bConfig, architecture }), ref: null, request, hostClasses, engines })

/** An architecture that only one of the two engines registers. */
const ofOne = (runtime: Runtime, other: Runtime): string => {
  const architecture = [...(engineFor(runtime)?.architectures ?? [])].find((name) => engineFor(other)?.architectures.has(name) === false)
  return architecture ?? assert.fail(`no architecture of ${runtime} alone`)
}

describe("settings that only an engine accepts which does not support the model", () => {
  it.each([
    ["a flag of SGLang's", ofOne("vllm", "sglang"), { engine_flags: { mem_fraction_static: 0.8, seed: 1 } }, /mem_fraction_static is refused: vllm-/],
    ["a flag of vLLM's", ofOne("sglang", "vllm"), { engine_flags: { max_num_seqs: 8 } }, /max_num_seqs is refused: sglang-/],
    ["a KV cache's type", ofOne("vllm", "sglang"), { kv_cache_dtype: "fp8_e5m2" }, /vllm-\S+ does not take the KV cache type fp8_e5m2/]
  ] as const)("%s: are refused by their name, with settings that are taken", (_, architecture, request, message) => {
    const answer = preview(architecture, request)
    assert.strictEqual(answer.kind, "refused")
    if (answer.kind !== "refused") return
    assert.match(answer.reason.message, message)
    const { serving } = answer.remedy
    const again = serving === null ? assert.fail("no remedy") : preview(architecture, serving)
    assert.deepStrictEqual(again.kind === "derived" ? again.serving : null, serving)
  })

  it("select the engine that accepts them if both engines support the model", () => {
    const answer = preview("LlamaForCausalLM", { kv_cache_dtype: "fp8_e5m2" })
    assert.strictEqual(answer.kind === "derived" ? answer.serving.runtime : answer.reason.message, "sglang")
  })

  it("make engines ignore invalid sampling defaults of the repository unless the caller decides otherwise", () => {
    const facts = { ...factsOf(llama8bConfig), refused_sampling: true } as const
    const flags = (request: ServingRequest) => {
      const answer = derivePreview({ facts, ref: null, request, hostClasses, engines })
      return answer.kind === "derived" ? answer.serving : assert.fail(answer.reason.message)
    }
    const chosen = flags({ runtime: "vllm" })
    assert.strictEqual(chosen.engine_flags?.generation_config, "vllm")
    const files = [{ path: "generation_config.json", size: 2, blob_id: "b".repeat(40), sha256: null }]
    const choices = choicesOf({}, chosen, { files }, engineWire("vllm"))
    assert.strictEqual(choices["engine_flags.generation_config"], "model")
    assert.notProperty(choices, "sampling_defaults")
    assert.strictEqual(flags({ runtime: "vllm", engine_flags: { generation_config: "auto" } }).engine_flags?.generation_config, "auto")
    assert.strictEqual(flags({ runtime: "sglang" }).engine_flags?.sampling_defaults, "openai")
  })

  it("are refused if they would cut the answers of the trial, or break requests that leave them out", () => {
    const taken = (given: object) => engineFor("vllm")?.flagIssue({ override_generation_config: given }) ?? null
    for (const defaults of [{ max_new_tokens: 64 }, { top_p: 0 }]) assert.strictEqual(taken(defaults)?.flag, "override_generation_config")
    assert.isNull(taken({ max_new_tokens: longestCheckedAnswer, top_p: 0.1 }))
    assert.isAtLeast(longestCheckedAnswer, 2_048 + 256)
    // A revision that an earlier version verified still starts with its flags.
    const earlier = { override_generation_config: { temperature: 0.6, max_new_tokens: 3_000 } }
    assert.deepStrictEqual(renderFlags(vllmFlags, earlier).args, ['--override-generation-config={"temperature":0.6,"max_new_tokens":3000}'])
  })

  it("are refused by each engine with a message, whatever their names are", () => {
    for (const flag of ["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "toLocaleString", ""])
      for (const engine of engines) assert.strictEqual(engine.flagIssue(JSON.parse(`{${JSON.stringify(flag)}:1}`))?.flag, flag)
  })
})
