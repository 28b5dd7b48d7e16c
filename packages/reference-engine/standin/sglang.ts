import { randomUUID } from "node:crypto"
import { commandLines } from "@seatrial/engines"
import { flatReasoning } from "../src/Answers.ts"
import type { Booted } from "../src/Boot.ts"
import { gib } from "../src/Log.ts"
import { ownSpeech, type Speech } from "../src/Speech.ts"
import { sglangMetrics } from "./sglangMetrics.ts"
import { startStandIn } from "./startStandIn.ts"
import type { ParsedArguments } from "./words.ts"

const two = (value: number) => String(value).padStart(2, "0")

/** Writes a line to standard error, as SGLang does. */
const line = (text: string) => {
  const now = new Date()
  const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`
  process.stderr.write(`[${date} ${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}] ${text}\n`)
}

/** The reference engine's start failures, with SGLang's messages. */
const reasons: ReadonlyArray<readonly [own: RegExp, there: string]> = [
  [/No available memory for the cache blocks|To serve at least one request/, "Not enough memory. Please try to increase --mem-fraction-static."],
  [
    /User-specified max_model_len (\(\d+\)) is greater than the derived max_model_len \(max_position_embeddings=(\d+)/,
    "User-specified context_length $1 is greater than the derived context_length ($2)."
  ],
  [/Invalid repository ID or local directory specified/, "Repo id must be in the form 'repo_name' or 'namespace/repo_name'"]
]

/** The reference engine's refusals of requests, with SGLang's messages. */
const refusals: typeof reasons = [
  [
    /maximum context length is (\d+) tokens\. However, you requested \d+ output tokens and your prompt contains (?:at least )?\1 /,
    "The input ($1 tokens) is longer than the model's context length ($1 tokens)."
  ],
  [
    /maximum context length is (\d+) tokens\. However, you requested (\d+) output tokens and your prompt contains (\d+) input tokens, for a total of (\d+) tokens/,
    "Requested token count exceeds the model's maximum context length of $1 tokens. You requested a total of $4 tokens: $3 tokens from the input messages and $2 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit."
  ]
]

const inWordsOf = (table: typeof reasons, message: string): string => {
  for (const [own, template] of table) {
    const match = own.exec(message)
    if (match !== null) return template.replaceAll(/\$(\d)/g, (_, group: string) => match[Number(group)] ?? "")
  }
  return message
}

const speech = (flags: ParsedArguments): Speech => {
  const figures = { weights: "0", seconds: "0", free: "0" }
  const cacheBytes = ({ cacheConfig }: Booted) => Number(cacheConfig.kv_cache_memory_bytes ?? 0)
  return {
    ...ownSpeech,
    version: null,
    warmsUp: true,
    booting: (_, text) => {
      const weights = /^Model loading took ([\d.]+) GiB memory and ([\d.]+) seconds/.exec(text)
      const free = /^Free memory on device \(([\d.]+)\//.exec(text)
      if (weights !== null) [figures.weights, figures.seconds] = [weights[1] ?? "0", weights[2] ?? "0"]
      if (free !== null) figures.free = free[1] ?? "0"
    },
    loaded: (booted, settings) => {
      const tokens = booted.cacheConfig.kv_cache_size_tokens ?? "0"
      const half = gib(cacheBytes(booted) / 2)
      const left = (Number(figures.free) - Number(figures.weights) - cacheBytes(booted) / 2 ** 30).toFixed(9)
      const chunk = flags.get("chunked-prefill-size")?.[0] ?? "2048"
      const loaded = (Number(figures.free) - Number(figures.weights)).toFixed(9)
      line(`Load weight begin. avail mem=${figures.free} GB`)
      line(`Load weight end. elapsed=${figures.seconds} s, type=LlamaForCausalLM, avail mem=${loaded} GB, mem usage=${figures.weights} GB.`)
      line(`KV Cache is allocated. dtype: torch.bfloat16, #tokens: ${tokens}, K size: ${half} GB, V size: ${half} GB`)
      line(
        `max_total_num_tokens=${tokens}, chunked_prefill_size=${chunk}, max_prefill_tokens=16384, max_running_requests=${settings.maxNumSeqs}, context_len=${booted.engine.maxModelLen}, available_gpu_mem=${left} GB`
      )
    },
    serving: (address) => {
      line(`Uvicorn running on ${address}`)
      line("The server is fired up and ready to roll!")
    },
    stopping: () => line("Gracefully exiting..."),
    failed: (message) => {
      line(`Scheduler hit an exception: ${inWordsOf(reasons, message)}`)
      line("Received sigquit from a child process. It usually means the child failed.")
    },
    broke: (message) => line(`Scheduler hit an exception: ${message}`),
    toolCallId: () => `call_${randomUUID().replaceAll("-", "").slice(0, 24)}`,
    finishOfNamedCall: "tool_calls",
    reasoningName: "reasoning_content",
    countReasoning: flatReasoning,
    promptIdsInChoice: true,
    additionalPaths: {
      "/model_info": ({ engine }) => ({
        model_path: engine.settings.model,
        served_model_name: engine.settings.servedModelNames[0],
        tokenizer_path: engine.settings.model,
        is_generation: true,
        preferred_sampling_params: null,
        weight_version: flags.get("weight-version")?.[0] ?? "default",
        load_format: flags.get("load-format")?.[0] ?? "auto",
        reasoning_parser: flags.get("reasoning-parser")?.[0] ?? null,
        tool_call_parser: flags.get("tool-call-parser")?.[0] ?? null,
        disaggregation_mode: "null",
        has_image_understanding: false,
        has_audio_understanding: false,
        model_type: "llama",
        architectures: ["LlamaForCausalLM"]
      })
    },
    metrics: (booted) => sglangMetrics(booted, Number(figures.weights)),
    error: ({ message, param, status, type }) => ({ object: "error", message: inWordsOf(refusals, message), type, param, code: status })
  }
}

startStandIn(
  {
    command: ["-m", "sglang.launch_server"],
    program: "launch_server.py",
    commandLine: commandLines.sglang,
    names: {
      model: "model-path",
      host: "host",
      port: "port",
      "max-model-len": "context-length",
      "max-num-seqs": "max-running-requests",
      "max-num-queued-reqs": "max-queued-requests",
      "gpu-memory-utilization": "mem-fraction-static",
      "load-format": "load-format",
      "lora-modules": "lora-paths",
      "max-lora-rank": "max-lora-rank",
      "chat-template": "chat-template",
      "hf-overrides": "json-model-override-args",
      seed: "random-seed"
    },
    anyModelName: true,
    edge: { cuts: false, unprompted: 7, unfilled: 2 },
    gpus: "tp-size",
    switches: { "enable-lora": "enable-lora", "enable-prompt-tokens-details": "enable-cache-report", "disable-prefix-caching": "disable-radix-cache" },
    readsReasoning: (flags) => ["deepseek-r1", "qwen3", "qwen3-thinking"].includes(flags.get("reasoning-parser")?.[0] ?? ""),
    toolCalls: (flags) => (["hermes", "qwen", "qwen25"].includes(flags.get("tool-call-parser")?.[0] ?? "") ? "read" : "unread"),
    speech
  },
  process.argv.slice(2)
)
