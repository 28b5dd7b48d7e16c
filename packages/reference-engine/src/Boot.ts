import { existsSync } from "node:fs"
import { totalmem } from "node:os"
import { readAdapter } from "./Adapter.ts"
import type { Arguments } from "./Arguments.ts"
import { BootFailure } from "./BootFailure.ts"
import { ChatTemplate } from "./ChatTemplate.ts"
import type { Engine } from "./Generation.ts"
import { blockBytes, KvPool, KvSequence, kvShape } from "./KvCache.ts"
import { Llama } from "./Llama.ts"
import { adaptable, readWeights, weightBytes, weightNames } from "./LlamaWeights.ts"
import { LoadedWeights } from "./LoadedWeights.ts"
import { gib, grouped } from "./Log.ts"
import { Metrics } from "./Metrics.ts"
import { type ModelConfig, readModelConfig } from "./ModelConfig.ts"
import { Safetensors } from "./Safetensors.ts"
import { Scheduler } from "./Scheduler.ts"
import { type Fault, sound } from "./Seams.ts"
import { closeThought, openThought, type ThoughtMarks } from "./ThoughtReader.ts"
import { Vocabulary } from "./Vocabulary.ts"

/** A loaded model that is ready to answer. */
export interface Booted {
  readonly engine: Engine
  readonly template: ChatTemplate
  readonly metrics: Metrics
  readonly loaded: LoadedWeights
  readonly cacheConfig: Readonly<Record<string, string>>
  /** Unix seconds. */
  readonly startedAt: number
}

const warmUpSteps = 24

const lengthOf = (settings: Arguments, config: ModelConfig): number => {
  const maxModelLen = settings.maxModelLen ?? config.maxLength
  if (maxModelLen > config.maxLength) {
    throw new BootFailure(
      `User-specified max_model_len (${maxModelLen}) is greater than the derived max_model_len (max_position_embeddings=${config.maxLength} in model's config.json).`
    )
  }
  return maxModelLen
}

/** Runs a few tokens through a temporary cache, so that the first request finds compiled code. */
const warmUp = (model: Llama, pool: KvPool, maxLength: number) => {
  const cache = new KvSequence(pool)
  for (let position = 0; position < Math.min(warmUpSteps, maxLength); position++) {
    if (cache.reserve(position)) model.step(position % model.config.vocabulary, position, cache, true)
  }
  cache.release()
}

/** The marks around reasoning, if the template writes some and each is one token of the tokenizer; otherwise null. */
const marksOf = ({ showsThoughts }: ChatTemplate, vocabulary: Vocabulary): ThoughtMarks | null => {
  const [open, close] = [vocabulary.idOf(openThought), vocabulary.idOf(closeThought)]
  return showsThoughts && open !== undefined && close !== undefined ? { open, close } : null
}

/** Adds the tokenizer's end token to the tokens that end an answer, as vLLM and SGLang do. */
const withEnd = (config: ModelConfig, end: number | undefined): ModelConfig =>
  end === undefined ? config : { ...config, endTokens: new Set([...config.endTokens, end]) }

/** Writes a log line. `source`: the file that logs it. */
type Say = (source: string, text: string) => void

/**
 * Loads the model directory and sizes the KV pool. Throws `BootFailure` with the last message of the log. Only tests pass
 * a `fault`.
 */
export const boot = (settings: Arguments, say: Say, fault: Fault | null = null): Booted => {
  const begun = performance.now()
  if (!existsSync(settings.model)) throw new BootFailure(`Invalid repository ID or local directory specified: '${settings.model}'`)
  const seams = fault?.seams ?? sound
  if (fault !== null) say("Boot.ts", `TEST ONLY: a fault was injected into this engine (${fault.name}). Do not trust its answers.`)
  const { config: stated, defaults } = readModelConfig(settings.model, settings.hfOverrides)
  const vocabulary = new Vocabulary(settings.model, stated.vocabulary)
  const template = new ChatTemplate(settings.model, settings.chatTemplate)
  const own = withEnd(stated, vocabulary.idOf(template.endToken))
  const config = seams.config?.(own) ?? own
  const maxModelLen = lengthOf(settings, config)
  const memory = settings.gpuMemoryBytes ?? totalmem()
  const budget = Math.floor(memory * settings.gpuMemoryUtilization)
  const ofOne = (bytes: number) => gib(bytes / settings.gpuCount)
  const files = new Safetensors(settings.model)
  const names = weightNames(config)
  if (files.bytes(names) > budget) {
    throw new BootFailure(
      `No available memory for the cache blocks. The weights alone take ${ofOne(files.bytes(names))} GiB of ${ofOne(budget)} GiB. Try increasing \`gpu_memory_utilization\` when initializing the engine.`
    )
  }
  const spoilt = seams.loaded
  const weights = readWeights(config, spoilt === undefined ? files : { read: (name, shape) => spoilt(name, files.read(name, shape)) })
  const read = settings.adapter === null ? null : readAdapter(settings.adapter.directory, adaptable(config), settings.maxLoraRank)
  const adapter = read === null ? null : { ...read, pairs: seams.adapter?.(read.pairs) ?? read.pairs }
  const held = weightBytes(weights) + (adapter?.bytes ?? 0)
  const loadSeconds = ((performance.now() - begun) / 1000).toFixed(3)
  say("Boot.ts", `Loading weights took ${loadSeconds} seconds`)
  say("Llama.ts", `Model loading took ${ofOne(held)} GiB memory and ${loadSeconds} seconds`)
  const initBegun = performance.now()
  const model = new Llama(config, weights, maxModelLen, null, seams)
  const adapted = adapter === null ? null : new Llama(config, weights, maxModelLen, adapter, seams)
  // Every simulated GPU has its own buffers.
  const overhead = settings.gpuCount * (model.workingBytes + (adapted?.workingBytes ?? 0))
  const available = budget - held - overhead
  say(
    "Boot.ts",
    `Free memory on device (${ofOne(memory)}/${ofOne(memory)} GiB) on startup. Desired GPU memory utilization is (${settings.gpuMemoryUtilization}, ${ofOne(budget)} GiB). Actual usage is ${ofOne(held)} GiB for consumed memory (weights + non-torch), ${ofOne(overhead)} GiB for peak activation, and 0 GiB for CUDAGraph memory. Current kv cache memory in use is ${ofOne(Math.max(0, available))} GiB`
  )
  say("Boot.ts", `Overhead is ${ofOne(overhead)} GiB`)
  say("Boot.ts", `Available KV cache memory: ${ofOne(Math.max(0, available))} GiB`)
  const type = settings.kvCacheDtype === "bfloat16" ? "bfloat16" : "float32"
  const shape = kvShape(config, settings.blockSize, type)
  const blocks = Math.floor(available / blockBytes(shape))
  const needed = Math.ceil(maxModelLen / settings.blockSize)
  if (blocks < 1) throw new BootFailure("No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.")
  if (blocks < needed) {
    throw new BootFailure(
      `To serve at least one request with the model's max seq len (${maxModelLen}), (${ofOne(needed * blockBytes(shape))} GiB KV cache is needed, which is larger than the available KV cache memory (${ofOne(available)} GiB). Based on the available memory, the estimated maximum model length is ${blocks * settings.blockSize}. Try increasing \`gpu_memory_utilization\` or decreasing \`max_model_len\` when initializing the engine.`
    )
  }
  const tokens = blocks * settings.blockSize
  const concurrency = (blocks / needed).toFixed(2)
  say("KvCache.ts", `GPU KV cache size: ${grouped(tokens)} tokens, Maximum concurrency for ${grouped(maxModelLen)} tokens per request: ${concurrency}x`)
  const pool = new KvPool(shape, blocks, settings.prefixCaching, seams.blockTokens)
  warmUp(adapted ?? model, pool, maxModelLen)
  say("Boot.ts", `init engine (profile, create kv cache, warmup model) took ${((performance.now() - initBegun) / 1000).toFixed(3)} s`)
  if (settings.adapter !== null) say("Boot.ts", `Loaded new LoRA adapter: name '${settings.adapter.name}', path '${settings.adapter.directory}'`)
  const metrics = new Metrics()
  const scheduler = new Scheduler(model, pool, metrics, { maxRunning: settings.maxNumSeqs, maxWaiting: settings.maxNumQueuedReqs, seed: settings.seed }, seams)
  return {
    engine: {
      settings,
      fault: fault?.name ?? null,
      seams,
      config,
      defaults,
      vocabulary,
      scheduler,
      adapted,
      maxModelLen,
      thoughtMarks: settings.readsReasoning ? marksOf(template, vocabulary) : null
    },
    template,
    metrics,
    loaded: new LoadedWeights(config, weights),
    cacheConfig: {
      block_size: String(settings.blockSize),
      cache_dtype: type,
      enable_prefix_caching: settings.prefixCaching ? "True" : "False",
      gpu_memory_utilization: String(settings.gpuMemoryUtilization),
      kv_cache_max_concurrency: concurrency,
      kv_cache_memory_bytes: String((blocks * blockBytes(shape)) / settings.gpuCount),
      kv_cache_size_tokens: String(tokens),
      num_gpu_blocks: String(blocks)
    },
    startedAt: Math.floor(Date.now() / 1000)
  }
}
