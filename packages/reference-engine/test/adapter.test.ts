import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { readAdapter } from "../src/Adapter.ts"
import { parseArguments } from "../src/Arguments.ts"
import { KvPool, KvSequence, kvShape } from "../src/KvCache.ts"
import { Llama } from "../src/Llama.ts"
import { adaptable, readWeights } from "../src/LlamaWeights.ts"
import { readModelConfig } from "../src/ModelConfig.ts"
import { Random } from "../src/Random.ts"
import { Safetensors } from "../src/Safetensors.ts"
import { serve } from "./engineClient.ts"
import { encodeSafetensors, makeTinyAdapter, type NamedTensor, writeTinyChat } from "./sample/index.ts"
import { slowLogits } from "./slowLlama.ts"
import { emptyDirectory, randomTensors, small, type Tensors, writeModel } from "./smallModel.ts"

const tokens = [504, 3, 77, 300, 77, 12, 499, 8, 256, 41, 41, 41, 130, 2]

/** An adapter's configuration for one module. */
interface Said {
  readonly rank: number
  readonly alpha: number
}

/**
 * Random pairs for the named weights with the configured ranks. The values are multiples of 1/64, which bfloat16
 * represents exactly.
 */
const pairsFor = (tensors: Tensors, names: ReadonlyArray<string>, of: (name: string) => Said): ReadonlyArray<NamedTensor> => {
  const random = new Random(23)
  return names.flatMap((name) => {
    const [output = 0, input = 0] = tensors.get(name)?.shape ?? []
    const values = (length: number) => Float32Array.from({ length }, () => Math.floor(random.unit() * 32 - 16) / 64)
    const { rank } = of(name)
    const module = `base_model.model.${name.replace(/\.weight$/, "")}`
    return [
      { name: `${module}.lora_A.weight`, shape: [rank, input], values: values(rank * input) },
      { name: `${module}.lora_B.weight`, shape: [output, rank], values: values(output * rank) }
    ]
  })
}

/** The weights with W + s B A instead of each adapted W, summed in float64. */
const merged = (tensors: Tensors, pairs: ReadonlyArray<NamedTensor>, scaleOf: (name: string) => number): Tensors => {
  const all = new Map(tensors)
  for (const a of pairs) {
    const name = `${a.name.replace("base_model.model.", "").replace(/\.lora_A\.weight$/, "")}.weight`
    const b = pairs.find((other) => other.name === a.name.replace("lora_A", "lora_B"))
    const weight = tensors.get(name)
    if (!a.name.includes("lora_A") || b === undefined || weight === undefined) continue
    const [rank = 0, input = 0] = a.shape
    const values = Float32Array.from(weight.values, (value, at) => {
      let sum = 0
      for (let k = 0; k < rank; k++) sum += (b.values[Math.floor(at / input) * rank + k] ?? 0) * (a.values[k * input + (at % input)] ?? 0)
      return value + scaleOf(name) * sum
    })
    all.set(name, { ...weight, values })
  }
  return all
}

const write = (config: object, pairs: ReadonlyArray<NamedTensor>): string => {
  const directory = emptyDirectory()
  writeFileSync(join(directory, "adapter_config.json"), JSON.stringify({ peft_type: "LORA", target_modules: "all-linear", ...config }))
  writeFileSync(join(directory, "adapter_model.safetensors"), encodeSafetensors(pairs))
  return directory
}

const furthest = (a: ArrayLike<number>, b: ArrayLike<number>) => Math.max(...Array.from(a, (value, i) => Math.abs(value - (b[i] ?? Number.NaN))))

describe("a LoRA adapter in the forward pass", () => {
  const everywhere = (name: string) => /proj|lm_head/.test(name)
  const of = (said: Said) => () => said
  const cases: ReadonlyArray<readonly [string, object, (name: string) => boolean, (name: string) => Said, (name: string) => number]> = [
    ["in every module", { r: 4, lora_alpha: 8 }, everywhere, of({ rank: 4, alpha: 8 }), () => 2],
    ["in queries and values", { r: 8, lora_alpha: 4 }, (name) => /[qv]_proj/.test(name), of({ rank: 8, alpha: 4 }), () => 0.5],
    ["in one layer", { r: 1, lora_alpha: 3 }, (name) => /layers\.1\..*(up|gate|down)/.test(name), of({ rank: 1, alpha: 3 }), () => 3],
    ["scaled by the rank's root", { r: 4, lora_alpha: 4, use_rslora: true }, everywhere, of({ rank: 4, alpha: 4 }), () => 2],
    [
      "with ranks and alphas by module",
      { r: 4, lora_alpha: 4, rank_pattern: { "layers.0.self_attn.q_proj": 2, up_proj: 8 }, alpha_pattern: { ".*\\.2\\.mlp\\..*": 12 } },
      everywhere,
      (name) => ({ rank: /layers\.0\.self_attn\.q/.test(name) ? 2 : /up_proj/.test(name) ? 8 : 4, alpha: 4 }),
      (name) => (/\.2\.mlp\./.test(name) ? 12 : 4) / (/layers\.0\.self_attn\.q/.test(name) ? 2 : /up_proj/.test(name) ? 8 : 4)
    ]
  ]
  for (const [name, config, chosen, said, scaleOf] of cases) {
    it(`equals merged weights in an independent float64 implementation: ${name}`, () => {
      const tensors = randomTensors(small, 11)
      const pairs = pairsFor(tensors, [...tensors.keys()].filter(chosen), said)
      const directory = writeModel(small, tensors)
      const { config: model } = readModelConfig(directory)
      const adapter = readAdapter(write(config, pairs), adaptable(model), 16)
      const weights = readWeights(model, new Safetensors(directory))
      const pool = new KvPool(kvShape(model, 4, "float32"), 64)
      const run = (llama: Llama) => {
        const cache = new KvSequence(pool)
        let logits = new Float32Array()
        tokens.forEach((id, position) => {
          expect(cache.reserve(position)).toBe(true)
          logits = Float32Array.from(llama.step([id], position, cache, true)[0] ?? [])
        })
        cache.release()
        return logits
      }
      const expected = slowLogits(small, merged(tensors, pairs, scaleOf), tokens)
      const base = run(new Llama(model, weights, 64))
      expect(furthest(base, expected)).toBeGreaterThan(0.05)
      expect(furthest(run(new Llama(model, weights, 64, adapter)), expected)).toBeLessThan(1e-3)
      // Requests without the adapter are not affected.
      expect(run(new Llama(model, weights, 64))).toEqual(base)
    })
  }
})

describe("an engine with a LoRA adapter", () => {
  const tiny = emptyDirectory()
  writeTinyChat(tiny, { seed: 7 })
  const adapter = (changed: Readonly<Record<string, unknown>> = {}, rank = 8) => {
    const directory = join(emptyDirectory(), "adapter")
    mkdirSync(directory)
    for (const [name, bytes] of makeTinyAdapter({ seed: 3, base: "odd/base", rank, config: changed })) writeFileSync(join(directory, name), bytes)
    return directory
  }

  it("applies the adapter by its name and not by the model's, concurrently and in one batch, and lists both", async () => {
    const { client, close } = await serve(tiny, "--enable-lora", `--lora-modules=tuned=${adapter()}`)
    try {
      const ask = (model: string) => client.chat("Tell me about a ship.", { model, max_tokens: 24 })
      const answers = await Promise.all(["tiny", "tuned", "tiny", "tuned"].map(ask))
      const texts = answers.map(({ choices: [{ message }] }) => message.content)
      expect(texts[0]).toBe(texts[2])
      expect(texts[1]).toBe(texts[3])
      expect(texts[0]).not.toBe(texts[1])
      expect(answers.map(({ model }) => model)).toEqual(["tiny", "tuned", "tiny", "tuned"])
      expect((await client.refusal("/v1/chat/completions", { model: "another", messages: [{ role: "user", content: "Hello" }] })).status).toBe(404)
      const listed = await (await fetch(`${client.address}/v1/models`)).json()
      expect(listed).toMatchObject({
        data: [
          { id: "tiny", parent: null },
          { id: "tuned", parent: "tiny", max_model_len: null }
        ]
      })
    } finally {
      await close()
    }
  })

  it.each([
    ["a rank above the limit", adapter({}, 32), [], /LoRA rank 32 is greater than max_lora_rank 16/],
    ["DoRA", adapter({ use_dora: true }), [], /does not yet support DoRA/],
    ["whole modules", adapter({ modules_to_save: ["lm_head"] }), [], /modules_to_save/],
    ["biases", adapter({ bias: "all" }), [], /bias is not supported/],
    ["another rank than stated", adapter({ r: 4 }), [], /lora_A\.weight has shape \[8, 256\]/],
    ["no such folder", "/nowhere", [], /adapter_config\.json/]
  ] as const)("does not start with %s, and says why", async (_, directory, words, said) => {
    await expect(serve(tiny, "--enable-lora", `--lora-modules=tuned=${directory}`, ...words)).rejects.toThrow(said)
  })

  it("accepts an adapter only with LoRA enabled, and a template from a file or as text", async () => {
    expect(parseArguments([`--model=${tiny}`, "--lora-modules=tuned=/adapter"])).toMatch(/Use --enable-lora/)
    expect(parseArguments([`--model=${tiny}`, "--enable-lora", "--lora-modules=tuned"])).toMatch(/invalid value/)
    const file = join(emptyDirectory(), "own.jinja")
    writeFileSync(file, "{{ messages[0].content }}")
    const counted = async (...words: ReadonlyArray<string>) => {
      const { client, close } = await serve(tiny, ...words)
      const { usage } = await client.chat("Hello", { max_tokens: 1 })
      await close()
      return usage.prompt_tokens
    }
    const [own, fromFile, asText] = [await counted(), await counted(`--chat-template=${file}`), await counted("--chat-template={{ messages[0].content }}")]
    expect(fromFile).toBeLessThan(own)
    expect(asText).toBe(fromFile)
  })
})
