import { nameInEngine, type ServedContract } from "@seatrial/domain"
import { type AdapterFiles, namedFolder, templateArgument, writtenArgument } from "../adapterFiles.ts"
import type { EngineContainer, EngineStart } from "../EngineAdapter.ts"
import { renderFlags } from "../EngineFlag.ts"
import { enginePort } from "../gpuEngine.ts"
import { servedImages } from "../images.ts"
import { yarnOverrides } from "../yarn.ts"
import { vllmRank } from "./adapters.ts"
import { vllmFlags } from "./flags.ts"
import { vllmLimits } from "./memory.ts"
import { release } from "./release.ts"
import { vllmWire } from "./wire.ts"

/** The limits of the images that a start with these flags serves; null if it serves none. */
export const vllmImageInput = (config: EngineStart["config"], flags: Readonly<Record<string, unknown>>): ServedContract["imageInput"] =>
  flags.language_model_only === true ? null : servedImages(config, flags.limit_mm_per_prompt)

/** Several names are separate words of one argument. */
const namesOf = (names: ReadonlyArray<string>, modelPath: string): ReadonlyArray<string> =>
  names.length === 0 ? [`--served-model-name=${modelPath}`] : ["--served-model-name", ...new Set(names.map((name) => nameInEngine(vllmWire, name)))]

const adapterArguments = (adapter: AdapterFiles): ReadonlyArray<string> => [
  "--enable-lora",
  "--max-loras=1",
  `--max-lora-rank=${vllmRank(adapter.facts.rank) ?? adapter.facts.rank}`,
  `--lora-modules=${namedFolder(adapter)}`,
  ...templateArgument(adapter)
]

/** The arguments that belong to the model and its settings. */
const modelArguments = ({ adapter, chatTemplate, config, hostClass, modelPath, servedNames, settings }: EngineStart): ReadonlyArray<string> => {
  const overrides = yarnOverrides(config, settings)
  return [
    `--model=${modelPath}`,
    ...namesOf(servedNames, modelPath),
    "--host=$(POD_IP)",
    `--port=${enginePort}`,
    `--tensor-parallel-size=${hostClass.gpu_count}`,
    "--pipeline-parallel-size=1",
    `--max-model-len=${settings.max_context}`,
    `--kv-cache-dtype=${settings.kv_cache_dtype}`,
    ...(overrides === null ? [] : [`--hf-overrides=${overrides}`]),
    "--load-format=safetensors",
    ...(adapter === undefined ? [] : adapterArguments(adapter)),
    // Otherwise requests with tools may use a different template (`resolve_chat_template`).
    ...(chatTemplate === undefined ? [] : [writtenArgument(chatTemplate)])
  ]
}

/** The arguments of every start. */
const fixedArguments = [
  // Shorter than the rest of the pod's grace period after the endpoint was drained.
  "--shutdown-timeout=8",
  "--disable-uvicorn-access-log",
  "--uvicorn-log-level=warning",
  "--disable-fastapi-docs",
  "--fingerprint-mode=none",
  "--enable-prompt-tokens-details",
  "--allowed-media-domains=none.invalid"
]

/** The container of vLLM. */
export const vllmContainer = (start: EngineStart): EngineContainer => {
  const { bootSeconds, cachePath, config, hostClass, settings } = start
  const flags = settings.engine_flags ?? {}
  const { sequences, stepTokens, utilization } = vllmLimits(release, { card: hostClass, flags, maxContext: settings.max_context })
  const chosen = renderFlags(vllmFlags, {
    ...flags,
    max_num_seqs: sequences,
    max_num_batched_tokens: stepTokens,
    gpu_memory_utilization: utilization
  })
  return {
    command: ["vllm", "serve"],
    args: [
      ...modelArguments(start),
      ...fixedArguments,
      // vLLM keeps this cache twice in host memory. The default of 4 GiB would exceed the memory request of the pod.
      ...(vllmImageInput(config, flags) === null ? [] : ["--mm-processor-cache-gb=0.5"]),
      ...chosen.args
    ],
    env: {
      ...chosen.env,
      VLLM_PLUGINS: "",
      VLLM_DO_NOT_TRACK: "1",
      VLLM_LOGGING_COLOR: "0",
      VLLM_SNAPSHOT: "0",
      VLLM_MEDIA_URL_ALLOW_REDIRECTS: "0",
      VLLM_ENGINE_READY_TIMEOUT_S: String(bootSeconds),
      VLLM_CACHE_ROOT: `${cachePath}/vllm`
    },
    port: enginePort,
    // The port is closed until vLLM is ready. Its liveness path also answers if the engine hangs; `/v1/models` at least
    // involves its server.
    probes: {
      startup: { path: vllmWire.livenessPath, periodSeconds: 5, timeoutSeconds: 5 },
      readiness: { path: "/v1/models", periodSeconds: 5, timeoutSeconds: 5 }
    },
    group: 0
  }
}
