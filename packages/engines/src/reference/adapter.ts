import { type FailureCode, failureTraits, type Measured, type ModelConfig, type NamedFailure, type ServingSettings } from "@seatrial/domain"
import { namedFolder, templateArgument } from "../adapterFiles.ts"
import type { EngineAdapter, EngineContainer } from "../EngineAdapter.ts"
import { flagLabel } from "../flagIssue.ts"
import { fullToolCalling, servedContract } from "../servedContract.ts"
import { templateIssue } from "../templateIssue.ts"
import { yarnOverrides } from "../yarn.ts"
import { chosenComputedContext, computedContext } from "./computedContext.ts"
import { referenceLimits } from "./limits.ts"
import { referenceMemory } from "./memory.ts"
import { referenceModelIssue } from "./modelIssue.ts"
import { referenceTokenizerIssue } from "./tokenizerIssue.ts"
import { referenceWire } from "./wire.ts"

const integerFlag = (minimum: number, maximum: number) => (value: unknown) =>
  typeof value === "number" && Number.isInteger(value) && value >= minimum && value <= maximum ? null : `must be an integer from ${minimum} to ${maximum}`

/** The flags that a caller may set, each rendered as `--flag=value`. */
const flags: Readonly<Record<string, (value: unknown) => string | null>> = {
  max_num_seqs: integerFlag(1, 256),
  seed: integerFlag(0, 2 ** 31 - 1),
  gpu_memory_utilization: (value) => (typeof value === "number" && value >= 0.5 && value <= 0.95 ? null : "must be a number from 0.5 to 0.95")
}

const overridesOf = (config: ModelConfig, settings: ServingSettings): ReadonlyArray<string> => {
  const overrides = yarnOverrides(config, settings)
  return overrides === null ? [] : [`--hf-overrides=${overrides}`]
}

const render = (engineFlags: Readonly<Record<string, unknown>>) =>
  Object.entries(engineFlags)
    .filter(([flag]) => Object.hasOwn(flags, flag))
    .map(([flag, value]) => `--${flag.replaceAll("_", "-")}=${value}`)

const gib = (text: string | undefined) => (text === undefined ? null : Math.round(Number(text) * 2 ** 30))

const last = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].at(-1)

const unnamed: NamedFailure = {
  code: "engine_start_failed",
  text: "reference-0.1.0 ended before it was ready. Choose another runtime or revision; the end of its output is in the log of Seatrial's operator."
}

const bootFailures: ReadonlyArray<readonly [pattern: RegExp, code: FailureCode, text: string]> = [
  [/maximum model length|max seq len/i, "context_does_not_fit", "The KV cache cannot hold one sequence of the requested context. Try a shorter context."],
  [/No available memory for the cache blocks/, "out_of_memory", "The weights leave no memory for the KV cache. Try a larger host class."],
  [/architectures .* are not supported/, "unsupported_architecture", "The engine does not support the model's architecture. Choose another runtime or model."],
  [
    /Cannot find any model weights with/,
    "weights_missing",
    "The repository has no weights that the engine can load. Choose another revision, or a repository with safetensors weights."
  ],
  [
    /Failed to load the tokenizer|Cannot read tokenizer/,
    "tokenizer_unreadable",
    "The engine could not load the repository's tokenizer. Choose another revision, or a repository whose tokenizer.json the engine reads."
  ],
  [
    /Following weights were not initialized from checkpoint/,
    "weights_incomplete",
    "The checkpoint lacks weights that the model's configuration names. Choose another revision."
  ],
  [
    /tensor|safetensors|its header/i,
    "weights_incomplete",
    "The engine could not load the model's tensors. Choose a revision whose weights are those of its configuration."
  ]
]

/** Causes whose text does not name the file, tensor or value. The last error of the engine names it. */
const isUnspecific = (code: FailureCode): boolean => failureTraits[code].mayBeWeights || code === "unsupported_architecture"

/** Maximum number of characters of the engine's message in a failure text. */
const maxErrorChars = 300

/** The last error in the log without node folders and addresses, so that callers may read it; null if there is none. */
const lastError = (log: string): string | null => {
  const message = [...log.matchAll(/\bERROR [\d-]+ [\d:]+ \[[\w.]+\] (.+)/g)].at(-1)?.[1]
  if (message === undefined) return null
  const plain = message
    .replaceAll(/(['"`])\/[^'"`]*?([^/'"`]*)\1/g, "$1$2$1")
    .replaceAll(/(?<![\w.])\/(?:[^\s/'"`,;]+\/)*(?=[^\s/'"`,;])/g, "")
    .replaceAll(/\b\d+(?:\.\d+){3}(?::\d+)?/g, "…")
    .replaceAll(/\p{Cc}/gu, " ")
  return plain.length > maxErrorChars ? `${plain.slice(0, maxErrorChars)}…` : plain.replace(/\.$/, "")
}

/**
 * The reference engine, for machines without a GPU. It computes in float32 for every precision of the checkpoint,
 * keeps its KV cache in float32, and counts its memory against the simulated GPU of the host class.
 */
export const reference: EngineAdapter = {
  runtime: "reference",
  wire: referenceWire,
  needsGpu: false,
  version: "reference-0.1.0",
  names: "all",
  architectures: new Set([referenceLimits.architecture]),
  modelIssue: referenceModelIssue,
  quantizations: new Set(["none"]),
  kvCacheDtypes: new Set(["auto"]),
  memory: referenceMemory,
  adapters: {
    issue: ({ experts }) => (experts ? "reference-0.1.0 does not support mixtures of experts." : null),
    buffers: ({ rank, targets }) => ({ slots: 1, rank, modules: targets, embeddings: targets.includes("lm_head"), graphs: 0 })
  },
  served: servedContract({
    toolCalls: ["hermes"],
    toolCalling: fullToolCalling,
    strict: ["hermes"],
    reasoning: ["think"],
    reasoningControls: { thinking_toggle: true, effort_values: [], token_budget: false }
  }),
  tokenizerIssue: referenceTokenizerIssue,
  templateIssue: (template) => templateIssue(template, true),
  flagIssue: (requested) => {
    for (const [flag, value] of Object.entries(requested)) {
      const check = Object.hasOwn(flags, flag) ? flags[flag] : undefined
      const label = flagLabel(flag)
      if (check === undefined) return { flag: label, message: `The runtime reference has no flag ${label}; it takes ${Object.keys(flags).join(", ")}.` }
      const problem = check(value)
      if (problem !== null) return { flag, message: `${flag} ${problem}.` }
    }
    return null
  },
  extendsContext: ({ rope }) => rope !== undefined,
  longestContext: computedContext,
  chosenContext: chosenComputedContext,
  variables: [],
  container: ({ adapter, config, hostClass, modelPath, servedNames, settings }): EngineContainer => ({
    command: ["seatrial-reference-engine"],
    args: [
      `--model=${modelPath}`,
      `--served-model-name=${servedNames.join(",")}`,
      `--max-model-len=${settings.max_context}`,
      `--gpu-memory-bytes=${hostClass.gpu_memory_bytes * hostClass.gpu_count}`,
      ...(hostClass.gpu_count === 1 ? [] : [`--gpu-count=${hostClass.gpu_count}`]),
      ...overridesOf(config, settings),
      "--host=$(POD_IP)",
      "--port=8000",
      "--enable-prompt-tokens-details",
      ...(adapter === undefined
        ? []
        : ["--enable-lora", `--max-lora-rank=${adapter.facts.rank}`, `--lora-modules=${namedFolder(adapter)}`, ...templateArgument(adapter)]),
      ...render(settings.engine_flags ?? {})
    ],
    env: {},
    port: 8000,
    probes: {
      startup: { path: referenceWire.livenessPath, periodSeconds: 1, timeoutSeconds: 5 },
      readiness: { path: referenceWire.livenessPath, periodSeconds: 2, timeoutSeconds: 25 }
    },
    group: 2000
  }),
  offers: () => ({
    scoring: { prompt_logprobs: 0 },
    prefixCache: true,
    seeds: true,
    biasBeforePenalties: true,
    tellsCutResponses: true,
    exactArithmetic: true,
    loadedTensors: { values: "/get_weights_by_name", checksum: "/weights_checker", type: "auto", mostValues: Number.MAX_SAFE_INTEGER }
  }),
  measured: ({ log, metrics }): Measured => {
    const weights = last(log, /Model loading took ([\d.]+) GiB memory and ([\d.]+) seconds/g)
    const cache = last(log, /Available KV cache memory: ([\d.]+) GiB/g)
    const info = metrics.split("\n").find((line) => line.startsWith("vllm:cache_config_info{")) ?? ""
    const label = (name: string) => new RegExp(`${name}="([\\d.]+)"`).exec(info)?.[1]
    const tokens = label("kv_cache_size_tokens")
    const concurrency = label("kv_cache_max_concurrency")
    const overhead = last(log, /Overhead is ([\d.]+) GiB/g)
    const boot = last(log, /init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s/g)
    return {
      weights_bytes: gib(weights?.[1]),
      kv_cache_bytes: gib(cache?.[1]),
      kv_cache_tokens: tokens === undefined ? null : Number(tokens),
      overhead_bytes: gib(overhead?.[1]),
      max_concurrency: concurrency === undefined ? null : Number(concurrency),
      load_seconds: weights?.[2] === undefined ? null : Number(weights[2]),
      activation_bytes: gib(overhead?.[1]),
      // It records no graphs.
      graph_bytes: 0,
      graph_seconds: 0,
      boot_seconds: boot?.[1] === undefined ? null : Number(boot[1])
    }
  },
  weightsLoaded: "Model loading took {} GiB memory and {} seconds",
  bootFailure: (log): NamedFailure => {
    const known = bootFailures.find(([pattern]) => pattern.test(log))
    const failure = known === undefined ? unnamed : { code: known[1], text: known[2] }
    const message = isUnspecific(failure.code) ? lastError(log) : null
    return message === null ? failure : { ...failure, text: `${failure.text} Its last error: ${message}.` }
  }
}
