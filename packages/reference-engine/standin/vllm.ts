import { commandLines } from "@seatrial/engines"
import { ownSpeech } from "../src/Speech.ts"
import { startStandIn } from "./startStandIn.ts"

startStandIn(
  {
    command: ["serve"],
    program: "vllm serve",
    commandLine: commandLines.vllm,
    names: {
      model: "model",
      host: "host",
      port: "port",
      "max-model-len": "max-model-len",
      "max-num-seqs": "max-num-seqs",
      "max-num-queued-reqs": "max-num-queued-reqs",
      "gpu-memory-utilization": "gpu-memory-utilization",
      "max-logprobs": "max-logprobs",
      "load-format": "load-format",
      "lora-modules": "lora-modules",
      "max-lora-rank": "max-lora-rank",
      "chat-template": "chat-template",
      "hf-overrides": "hf-overrides",
      seed: "seed"
    },
    anyModelName: false,
    edge: { cuts: true, unprompted: 1, unfilled: 0 },
    gpus: "tensor-parallel-size",
    switches: {
      "enable-lora": "enable-lora",
      "enable-prompt-tokens-details": "enable-prompt-tokens-details",
      "disable-prefix-caching": "disable-prefix-caching"
    },
    readsReasoning: (flags) => ["deepseek_r1", "qwen3"].includes(flags.get("reasoning-parser")?.[0] ?? ""),
    // Without a parser, vLLM refuses requests that leave the choice of tools to the model.
    toolCalls: (flags) => (!flags.has("enable-auto-tool-choice") ? "refused" : flags.get("tool-call-parser")?.[0] === "hermes" ? "read" : "unread"),
    // The reference engine already has vLLM's log lines, metrics and answers. The only difference: answers contain the
    // first served name, not the name of the request.
    speech: () => ({
      ...ownSpeech,
      version: "simulated-vllm-0.33.0",
      tellsWeights: false,
      reportedName: ({ adapter, servedModelNames }, requested) => (requested === adapter?.name ? (requested ?? servedModelNames[0]) : servedModelNames[0])
    })
  },
  process.argv.slice(2)
)
