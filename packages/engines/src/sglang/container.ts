import type { KvCacheDtype } from "@seatrial/domain"
import { type AdapterFiles, namedFolder, templateArgument } from "../adapterFiles.ts"
import type { EngineContainer, EngineStart } from "../EngineAdapter.ts"
import { renderFlags } from "../EngineFlag.ts"
import { enginePort } from "../gpuEngine.ts"
import { yarnOverrides } from "../yarn.ts"
import { sglangFlags } from "./flags.ts"
import { type SglangLimits, scoredAtOnce, sglangLimits } from "./memory.ts"
import { sglangHealthPath, sglangWire } from "./wire.ts"

/** SGLang does not know the name `fp8`. */
const cacheDtypes: Readonly<Record<KvCacheDtype, string>> = { auto: "auto", fp8: "fp8_e4m3", fp8_e4m3: "fp8_e4m3", fp8_e5m2: "fp8_e5m2" }

/** The flags that Seatrial always sets, because SGLang's defaults depend on the machine. */
export const limitFlags = ({ chunk, fraction, graphSequences, sequences }: SglangLimits) => ({
  max_running_requests: sequences,
  chunked_prefill_size: chunk,
  mem_fraction_static: Math.min(0.95, Math.max(0.5, fraction)),
  cuda_graph_max_bs_decode: graphSequences
})

const adapterArguments = (adapter: AdapterFiles): ReadonlyArray<string> => [
  "--enable-lora",
  // One more than it serves, because requests without an adapter, such as health checks, occupy a slot.
  "--max-loras-per-batch=2",
  `--max-lora-rank=${adapter.facts.rank}`,
  `--lora-paths=${namedFolder(adapter)}`,
  // Otherwise unknown weights only cause a warning.
  "--lora-strict-loading",
  ...templateArgument(adapter)
]

/** The arguments that belong to the model and its settings. */
const modelArguments = ({ adapter, commit, config, hostClass, modelPath, servedNames, settings }: EngineStart): ReadonlyArray<string> => {
  const overrides = yarnOverrides(config, settings)
  return [
    `--model-path=${modelPath}`,
    `--served-model-name=${servedNames[0] ?? modelPath}`,
    "--host=$(POD_IP)",
    `--port=${enginePort}`,
    `--tp-size=${hostClass.gpu_count}`,
    "--pp-size=1",
    `--context-length=${settings.max_context}`,
    `--kv-cache-dtype=${cacheDtypes[settings.kv_cache_dtype]}`,
    ...(overrides === null ? [] : [`--json-model-override-args=${overrides}`]),
    "--load-format=safetensors",
    // SGLang reports this value, and the trial compares it with the commit.
    ...(commit === undefined ? [] : [`--weight-version=${commit}`]),
    ...(adapter === undefined ? [] : adapterArguments(adapter))
  ]
}

/** The arguments of every start. */
const fixedArguments = [
  // If there are several templates, SGLang takes the first one (`_select_named_template`).
  "--hf-chat-template-name=default",
  "--log-level-http=warning",
  "--enable-metrics",
  "--enable-cache-report",
  "--allowed-media-domains=none.invalid"
]

/** The container of SGLang 0.5.23. */
export const sglangContainer = (start: EngineStart): EngineContainer => {
  const { bootSeconds, cachePath, config, hostClass, settings } = start
  const flags = settings.engine_flags ?? {}
  const chosen = renderFlags(sglangFlags, { ...flags, ...limitFlags(sglangLimits({ card: hostClass, config, flags })) })
  return {
    command: ["python3", "-m", "sglang.launch_server"],
    args: [...modelArguments(start), ...fixedArguments, ...chosen.args],
    env: {
      ...chosen.env,
      SGLANG_PLUGINS: "",
      DISABLE_OPENAPI_DOC: "1",
      SGLANG_WARMUP_TIMEOUT: String(bootSeconds),
      SGLANG_LOGPROB_CHUNK_SIZE: String(scoredAtOnce),
      SGLANG_CACHE_DIR: `${cachePath}/sglang`
    },
    port: enginePort,
    // After the first answer the liveness path is cheap.
    probes: {
      startup: { path: sglangHealthPath, periodSeconds: 10, timeoutSeconds: 25 },
      readiness: { path: sglangWire.livenessPath, periodSeconds: 5, timeoutSeconds: 5 }
    },
    group: 2000
  }
}
