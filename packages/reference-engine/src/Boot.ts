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
import { type Fault, type Seams, sound } from "./Seams.ts"
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
    if (cache.reserve(position)) model.step([position % model.config.vocabulary], position, cache, true)
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

/** How a start is set up. */
interface Start {
  readonly settings: Arguments
  readonly say: Say
  readonly seams: Seams
}

/** Bytes in GiB, of one of the simulated GPUs. */
const gibOfOne = ({ gpuCount }: Arguments, bytes: number) => gib(bytes / gpuCount)

/** Reads the configuration, the tokenizer and the template of the model. */
const readModel = ({ seams, settings }: Start) => {
  const { config: stated, defaults } = readModelConfig(settings.model, settings.hfOverrides)
  const vocabulary = new Vocabulary(settings.model, stated.vocabulary)
  const template = new ChatTemplate(settings.model, settings.chatTemplate)
  const own = withEnd(stated, vocabulary.idOf(template.endToken))
  const config = seams.config?.(own) ?? own
  return { config, defaults, vocabulary, template, maxModelLen: lengthOf(settings, config) }
}

/** The memory of the machine or of the settings in bytes, and the share that may be used. */
const memoryOf = ({ gpuMemoryBytes, gpuMemoryUtilization }: Arguments) => {
  const memory = gpuMemoryBytes ?? totalmem()
  return { memory, budget: Math.floor(memory * gpuMemoryUtilization) }
}

/** Loads the weights and the adapter. `begun`: when the start began. */
const loadWeights = ({ say, seams, settings }: Start, config: ModelConfig, budget: number, begun: number) => {
  const files = new Safetensors(settings.model)
  const needed = files.bytes(weightNames(config))
  if (needed > budget) {
    throw new BootFailure(
      `No available memory for the cache blocks. The weights alone take ${gibOfOne(settings, needed)} GiB of ${gibOfOne(settings, budget)} GiB. Try increasing \`gpu_memory_utilization\` when initializing the engine.`
    )
  }
  const change = seams.loaded
  const weights = readWeights(config, change === undefined ? files : { read: (name, shape) => change(name, files.read(name, shape)) })
  const read = settings.adapter === null ? null : readAdapter(settings.adapter.directory, adaptable(config), settings.maxLoraRank)
  const adapter = read === null ? null : { ...read, pairs: seams.adapter?.(read.pairs) ?? read.pairs }
  const bytes = weightBytes(weights) + (adapter?.bytes ?? 0)
  const loadSeconds = ((performance.now() - begun) / 1000).toFixed(3)
  say("Boot.ts", `Loading weights took ${loadSeconds} seconds`)
  say("Llama.ts", `Model loading took ${gibOfOne(settings, bytes)} GiB memory and ${loadSeconds} seconds`)
  return { weights, adapter, bytes }
}

/** Throws `BootFailure` if the cache cannot hold the longest sequence. */
const requireCache = (settings: Arguments, maxModelLen: number, blocks: number, needed: number, bytesOfBlock: number, available: number) => {
  if (blocks < 1) throw new BootFailure("No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.")
  if (blocks >= needed) return
  throw new BootFailure(
    `To serve at least one request with the model's max seq len (${maxModelLen}), (${gibOfOne(settings, needed * bytesOfBlock)} GiB KV cache is needed, which is larger than the available KV cache memory (${gibOfOne(settings, available)} GiB). Based on the available memory, the estimated maximum model length is ${blocks * settings.blockSize}. Try increasing \`gpu_memory_utilization\` or decreasing \`max_model_len\` when initializing the engine.`
  )
}

/** Logs the memory in bytes: of the machine, of the budget, of the weights and of the working buffers. */
const logMemory = ({ say, settings }: Start, memory: number, budget: number, weights: number, overhead: number) => {
  const ofOne = (bytes: number) => gibOfOne(settings, bytes)
  const available = Math.max(0, budget - weights - overhead)
  say(
    "Boot.ts",
    `Free memory on device (${ofOne(memory)}/${ofOne(memory)} GiB) on startup. Desired GPU memory utilization is (${settings.gpuMemoryUtilization}, ${ofOne(budget)} GiB). Actual usage is ${ofOne(weights)} GiB for consumed memory (weights + non-torch), ${ofOne(overhead)} GiB for peak activation, and 0 GiB for CUDAGraph memory. Current kv cache memory in use is ${ofOne(available)} GiB`
  )
  say("Boot.ts", `Overhead is ${ofOne(overhead)} GiB`)
  say("Boot.ts", `Available KV cache memory: ${ofOne(available)} GiB`)
}

/** Makes the KV cache of these many bytes, and its figures as vLLM reports them. */
const makeCache = ({ say, seams, settings }: Start, config: ModelConfig, maxModelLen: number, available: number) => {
  const type = settings.kvCacheDtype === "bfloat16" ? "bfloat16" : "float32"
  const shape = kvShape(config, settings.blockSize, type)
  const blocks = Math.floor(available / blockBytes(shape))
  const needed = Math.ceil(maxModelLen / settings.blockSize)
  requireCache(settings, maxModelLen, blocks, needed, blockBytes(shape), available)
  const tokens = blocks * settings.blockSize
  const concurrency = (blocks / needed).toFixed(2)
  say("KvCache.ts", `GPU KV cache size: ${grouped(tokens)} tokens, Maximum concurrency for ${grouped(maxModelLen)} tokens per request: ${concurrency}x`)
  return {
    pool: new KvPool(shape, blocks, settings.prefixCaching, seams.blockTokens, seams.findsAfterAny),
    cacheConfig: {
      block_size: String(settings.blockSize),
      cache_dtype: type,
      enable_prefix_caching: settings.prefixCaching ? "True" : "False",
      gpu_memory_utilization: String(settings.gpuMemoryUtilization),
      kv_cache_max_concurrency: concurrency,
      kv_cache_memory_bytes: String((blocks * blockBytes(shape)) / settings.gpuCount),
      kv_cache_size_tokens: String(tokens),
      num_gpu_blocks: String(blocks)
    }
  }
}

/**
 * Loads the model directory and sizes the KV pool. Throws `BootFailure` with the last message of the log. Only tests
 * pass a `fault`.
 */
export const boot = (settings: Arguments, say: Say, fault: Fault | null = null): Booted => {
  const begun = performance.now()
  if (!existsSync(settings.model)) throw new BootFailure(`Invalid repository ID or local directory specified: '${settings.model}'`)
  const seams = fault?.seams ?? sound
  if (fault !== null) say("Boot.ts", `TEST ONLY: a fault was injected into this engine (${fault.name}). Do not trust its answers.`)
  const start = { settings, say, seams }
  const { config, defaults, maxModelLen, template, vocabulary } = readModel(start)
  const { budget, memory } = memoryOf(settings)
  const { adapter, bytes, weights } = loadWeights(start, config, budget, begun)
  const initBegun = performance.now()
  const model = new Llama(config, weights, maxModelLen, null, seams)
  const adapted = adapter === null ? null : new Llama(config, weights, maxModelLen, adapter, seams)
  // Every simulated GPU has its own buffers.
  const overhead = settings.gpuCount * (model.workingBytes + (adapted?.workingBytes ?? 0))
  logMemory(start, memory, budget, bytes, overhead)
  const { cacheConfig, pool } = makeCache(start, config, maxModelLen, budget - bytes - overhead)
  warmUp(adapted ?? model, pool, maxModelLen)
  say("Boot.ts", `init engine (profile, create kv cache, warmup model) took ${((performance.now() - initBegun) / 1000).toFixed(3)} s`)
  if (settings.adapter !== null) say("Boot.ts", `Loaded new LoRA adapter: name '${settings.adapter.name}', path '${settings.adapter.directory}'`)
  const metrics = new Metrics()
  const scheduler = new Scheduler(model, pool, metrics, { maxRunning: settings.maxNumSeqs, maxWaiting: settings.maxNumQueuedReqs, seed: settings.seed }, seams)
  const thoughtMarks = settings.readsReasoning ? marksOf(template, vocabulary) : null
  return {
    engine: { settings, fault: fault?.name ?? null, seams, config, defaults, vocabulary, scheduler, adapted, maxModelLen, thoughtMarks },
    template,
    metrics,
    loaded: new LoadedWeights(config, weights),
    cacheConfig,
    startedAt: Math.floor(Date.now() / 1000)
  }
}
