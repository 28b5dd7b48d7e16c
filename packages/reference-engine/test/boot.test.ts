import { copyFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { parseArguments } from "../src/Arguments.ts"
import { BootFailure } from "../src/BootFailure.ts"
import { serve, Tokens } from "./engineClient.ts"
import { writeTinyChat } from "./sample/index.ts"
import { configOf, emptyDirectory, randomTensors, small, writeModel } from "./smallModel.ts"

const tiny = emptyDirectory()
writeTinyChat(tiny, { seed: 7 })

const copied = (change: (directory: string) => void): string => {
  const directory = emptyDirectory()
  for (const file of readdirSync(tiny)) copyFileSync(join(tiny, file), join(directory, file))
  change(directory)
  return directory
}
const withConfig = (fields: object) => writeAt(writeModel(small, randomTensors(small, 1)), "config.json", { ...configOf(small), ...fields })
const writeAt = (directory: string, file: string, content: unknown) => {
  writeFileSync(join(directory, file), JSON.stringify(content))
  return directory
}
const Added = Schema.fromJsonString(
  Schema.StructWithRest(Schema.Struct({ added_tokens: Schema.Array(Schema.Unknown) }), [Schema.Record(Schema.String, Schema.Unknown)])
)
const lacking = (name: string) => {
  const tensors = randomTensors(small, 1)
  tensors.delete(name)
  return writeModel(small, tensors)
}

describe("optional files", () => {
  const tokensOf = async (directory: string, body: object) => {
    const { client, close } = await serve(directory)
    const { tokens } = await client.ask(Tokens, "/tokenize", body)
    await close()
    return tokens
  }
  const template = "{% for message in messages %}{{ message.content }}{% endfor %}"

  it("of several templates the one named default is used, and special tokens work without a configuration file", async () => {
    const several = copied((directory) => {
      rmSync(join(directory, "chat_template.jinja"), { force: true })
      writeAt(directory, "tokenizer_config.json", {
        chat_template: [
          { name: "tools", template: "no" },
          { name: "default", template }
        ]
      })
    })
    const unnamed = copied((directory) => {
      rmSync(join(directory, "chat_template.jinja"), { force: true })
      writeAt(directory, "tokenizer_config.json", { chat_template: [{ name: "tools", template }] })
    })
    const dictionary = copied((directory) => {
      rmSync(join(directory, "chat_template.jinja"), { force: true })
      writeAt(directory, "tokenizer_config.json", { chat_template: { default: template } })
    })
    const without = copied((directory) => {
      rmSync(join(directory, "tokenizer_config.json"))
      writeFileSync(join(directory, "chat_template.jinja"), template)
    })
    const request = { messages: [{ role: "user", content: "The ship" }], add_special_tokens: false }
    const tokens = await tokensOf(tiny, { prompt: "The ship", add_special_tokens: false })
    expect([await tokensOf(several, request), await tokensOf(without, request)]).toEqual([tokens, tokens])
    await expect(tokensOf(unnamed, request)).rejects.toThrow()
    // The repository screening also ignores a dictionary, and serves completions only.
    expect(await tokensOf(dictionary, { prompt: "The ship", add_special_tokens: false })).toEqual(tokens)
    await expect(tokensOf(dictionary, request)).rejects.toThrow()
  })

  it("an added token without a row in the embedding makes a prompt invalid, but not the model", async () => {
    const directory = copied((directory) => {
      const tokenizer = Schema.decodeUnknownSync(Added)(readFileSync(join(directory, "tokenizer.json"), "utf8"))
      const added = { id: 600, content: "<|late|>", single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }
      writeAt(directory, "tokenizer.json", { ...tokenizer, added_tokens: [...tokenizer.added_tokens, added] })
    })
    const { client, close } = await serve(directory)
    expect((await client.text("The ship", { max_tokens: 2 })).usage.completion_tokens).toBeGreaterThan(0)
    expect(await client.refusal("/v1/completions", { prompt: "The <|late|> ship", max_tokens: 2 })).toMatchObject({ status: 400, param: "prompt" })
    await close()
  })
})

describe("the repository's sampling defaults", () => {
  const defaultsOf = async (generation: object) => {
    const { booted, close } = await serve(copied((directory) => writeAt(directory, "generation_config.json", generation)))
    await close()
    return booted.engine.defaults
  }

  it("are used if requests could set them, and ignored otherwise", async () => {
    const neutral = { temperature: 1, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1 }
    expect(await defaultsOf({ temperature: 0.6, top_k: 20 })).toEqual({ ...neutral, temperature: 0.6, topK: 20 })
    expect(await defaultsOf({ temperature: 3, top_p: 0, top_k: "many", min_p: null, repetition_penalty: -1 })).toEqual(neutral)
  })
})

describe("the end of an answer", () => {
  const endsOf = async (change: (directory: string) => void): Promise<ReadonlyArray<number>> => {
    const { booted, close } = await serve(copied(change))
    await close()
    return [...booted.engine.config.endTokens].sort()
  }
  const unnamed = (directory: string) => {
    writeAt(directory, "generation_config.json", {})
    const config = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))(
      readFileSync(join(directory, "config.json"), "utf8")
    )
    writeAt(directory, "config.json", { ...config, eos_token_id: null })
  }

  it("includes the end token of the tokenizer, even if the configuration names another one or none", async () => {
    const ends = await endsOf(() => {})
    expect(ends).toHaveLength(1)
    expect(await endsOf(unnamed)).toEqual(ends)
    expect(await endsOf((directory) => writeAt(directory, "generation_config.json", { eos_token_id: 7 }))).toEqual([...ends, 7].sort())
    const without = (directory: string) => {
      unnamed(directory)
      rmSync(join(directory, "tokenizer_config.json"))
    }
    expect(await endsOf(without)).toEqual([])
  })
})

/** Memory with room for half of the longest sequence. Tests before this one may have made buffers that all engines of this process share. */
const memoryForHalf = async () => {
  const { booted, close } = await serve(tiny)
  await close()
  const share = 0.92
  const taken = share * 67_108_864 - Number(booted.cacheConfig.kv_cache_memory_bytes)
  return `--gpu-memory-bytes=${Math.round((taken + 512 * 1_024) / share)}`
}

describe("an engine that cannot start", () => {
  const cases: ReadonlyArray<readonly [string, () => string, ReadonlyArray<string>, string]> = [
    ["no directory", () => "/nonexistent/model", [], "Invalid repository ID or local directory specified: '/nonexistent/model'"],
    ["no config", () => copied((directory) => rmSync(join(directory, "config.json"))), [], "has no config.json"],
    ["no weights", () => copied((directory) => rmSync(join(directory, "model.safetensors"))), [], "Cannot find any model weights with"],
    ["no tokenizer", () => copied((directory) => rmSync(join(directory, "tokenizer.json"))), [], "has no tokenizer.json"],
    ["a cut file", () => copied((directory) => truncateSync(join(directory, "model.safetensors"), 900_000)), [], "900000 bytes, but its header describes"],
    [
      "another architecture",
      () => withConfig({ architectures: ["MambaForCausalLM"] }),
      [],
      "Model architectures ['MambaForCausalLM'] are not supported for now"
    ],
    ["biases", () => withConfig({ attention_bias: true }), [], "attention_bias"],
    ["layers with a window", () => withConfig({ sliding_window: 512 }), [], "layers with a sliding window"],
    [
      "some layers with a window",
      () => withConfig({ sliding_window: 512, layer_types: ["full_attention", "sliding_attention"] }),
      [],
      "layers with a sliding window"
    ],
    ["heads that turn in part", () => withConfig({ partial_rotary_factor: 0.5 }), [], "partial_rotary_factor 0.5; only 1"],
    [
      "heads that turn in part, told beside the scaling",
      () => withConfig({ rope_parameters: { partial_rotary_factor: 0.5 } }),
      [],
      "partial_rotary_factor 0.5"
    ],
    ["dynamic scaling", () => withConfig({ rope_scaling: { rope_type: "dynamic", factor: 4 } }), [], "rope scaling 'dynamic' is not supported"],
    [
      "a scaling by an argument",
      () => withConfig({}),
      ['--hf-overrides={"rope_parameters":{"rope_type":"yarn","factor":0.5}}'],
      "rope scaling 'yarn' has a missing or invalid field"
    ],
    ["another width", () => withConfig({ intermediate_size: 44 }), [], "has shape [40, 24], but config.json asks for [44, 24]"],
    ["a missing tensor", () => lacking("model.layers.1.mlp.up_proj.weight"), [], "not initialized from checkpoint: model.layers.1.mlp.up_proj.weight"],
    [
      "a vocabulary beyond the embedding",
      () => writeModel({ ...small, vocabulary: 500 }, randomTensors({ ...small, vocabulary: 500 }, 1)),
      [],
      "beyond the 500 rows"
    ],
    ["a broken template", () => copied((directory) => writeFileSync(join(directory, "chat_template.jinja"), "{% if %}")), [], "chat template"],
    [
      "a longer context than the model has",
      () => tiny,
      ["--max-model-len=1025"],
      "User-specified max_model_len (1025) is greater than the derived max_model_len"
    ],
    ["weights larger than the budget", () => tiny, ["--gpu-memory-bytes=1000000"], "No available memory for the cache blocks"],
    ["no room for a block", () => tiny, ["--gpu-memory-bytes=2420000"], "No available memory for the cache blocks"]
  ]
  for (const [name, directory, words, message] of cases) {
    it(name, async () => {
      const failure = await serve(directory(), ...words).then(
        () => null,
        (cause: unknown) => cause
      )
      expect(failure).toBeInstanceOf(BootFailure)
      expect(String(failure)).toContain(message)
    })
  }

  it("without room for one full sequence, names a context that fits, and this context fits", async () => {
    const words = [await memoryForHalf()]
    const failure = await serve(tiny, ...words).catch(String)
    expect(failure).toContain("To serve at least one request with the model's max seq len (1024)")
    const length = /estimated maximum model length is (\d+)/.exec(String(failure))?.[1]
    const { close } = await serve(tiny, ...words, `--max-model-len=${length}`)
    await close()
  })
})

describe("the log", () => {
  it("has vLLM's figures, which agree with each other and with the metrics", async () => {
    const { booted, close, lines } = await serve(tiny)
    const text = lines.join("\n")
    const number = (pattern: RegExp) => Number(pattern.exec(text)?.[1]?.replaceAll(",", ""))
    const weights = number(/Model loading took ([\d.]+) GiB memory/) * 1024 ** 3
    const kv = number(/Available KV cache memory: ([\d.]+) GiB/) * 1024 ** 3
    const tokens = number(/GPU KV cache size: ([\d,]+) tokens/)
    const overhead = number(/Overhead is ([\d.]+) GiB/) * 1024 ** 3
    const stored = readFileSync(join(tiny, "model.safetensors")).length
    expect(Math.abs(weights - stored)).toBeLessThan(0.01 * stored)
    expect(Math.abs(weights + kv + overhead - 0.92 * 67_108_864)).toBeLessThan(8)
    expect(Math.abs(kv / tokens - 2 * 2 * 32 * 4 * 4)).toBeLessThan(1)
    expect(booted.cacheConfig.kv_cache_size_tokens).toBe(String(tokens))
    expect(number(/Maximum concurrency for 1,024 tokens per request: ([\d.]+)x/)).toBeCloseTo(tokens / 1024, 1)
    await close()
  })

  it("reports for two GPUs the share of one: half of the weights and the cache, and all working buffers", async () => {
    const figures = async (...words: ReadonlyArray<string>) => {
      const { booted, close, lines } = await serve(tiny, ...words)
      await close()
      const number = (pattern: RegExp) => Number(pattern.exec(lines.join("\n"))?.[1]) * 1024 ** 3
      const { kv_cache_memory_bytes: bytes, kv_cache_size_tokens: tokens } = booted.cacheConfig
      return {
        weights: number(/Model loading took ([\d.]+) GiB memory/),
        overhead: number(/Overhead is ([\d.]+) GiB/),
        cache: number(/Available KV cache memory: ([\d.]+) GiB/),
        perToken: Number(bytes) / Number(tokens)
      }
    }
    const one = await figures()
    const two = await figures("--gpu-count=2", "--gpu-memory-bytes=134217728")
    expect(two.weights / one.weights).toBeCloseTo(0.5, 5)
    expect(two.overhead).toBeCloseTo(one.overhead, 0)
    expect(Math.abs(two.cache - one.cache - one.weights / 2)).toBeLessThan(8)
    expect(two.perToken).toBe(one.perToken / 2)
  })
})

describe("arguments", () => {
  it("are refused if unknown, repeated, without value or out of range", () => {
    for (const words of [
      ["--model=x", "--trust-remote-code"],
      ["--model=x", "--model=y"],
      ["--model=x", "--port"],
      ["--model=x", "--port=99999"],
      ["--model=x", "--max-model-len=128k"],
      ["--model=x", "--gpu-memory-utilization=1.5"],
      ["--model=x", "--tensor-parallel-size=2"],
      ["model"],
      []
    ]) {
      expect(typeof parseArguments(words), words.join(" ")).toBe("string")
    }
  })

  it("are used as given", () => {
    expect(parseArguments(["--model=/m", "--max-model-len=512", "--kv-cache-dtype=float32", "--enable-prompt-tokens-details"])).toMatchObject({
      model: "/m",
      servedModelNames: ["/m"],
      maxModelLen: 512,
      kvCacheDtype: "float32",
      gpuMemoryUtilization: 0.92,
      enablePromptTokensDetails: true
    })
  })
})
