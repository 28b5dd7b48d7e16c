import type { FlagIssue } from "@seatrial/domain"
import type { CommandLine } from "./CommandLine.ts"
import type { EngineFlags } from "./EngineFlag.ts"

/**
 * Arguments that callers may not set, by the engine's names, with the reason. A name that ends in `*` matches all names
 * with this beginning.
 */
export interface Denial {
  readonly names: ReadonlyArray<string>
  readonly why: string
}

/** The rules that decide whether a flag is allowed, in the order in which they are checked. */
export interface FlagTable {
  readonly version: string
  readonly flags: EngineFlags
  readonly denied: ReadonlyArray<Denial>
  readonly commandLine: CommandLine
}

const loadsCode = "it would run code that is not part of the engine"
const readsElsewhere = "it would load files or weights other than the pinned and checked ones"
const opensConnections = "it would open a port or a connection"
const switchesOff = "it would disable a check, log what users send, or open a control endpoint"
const unbounded = "it accepts arbitrary settings, or uses host memory that the pod does not reserve"
const fetches = "it would let requests read files or reach other hosts"

/** The reason for arguments that Seatrial sets. `by`: the setting that decides instead. */
const own = (by: string) => `Seatrial sets it itself, from ${by}`

/** Arguments that no engine accepts from callers. */
export const alwaysDenied: ReadonlyArray<Denial> = [
  {
    names: [
      "trust-remote-code",
      "auto-map",
      "tool-parser-plugin",
      "reasoning-parser-plugin",
      "io-processor-plugin",
      "middleware",
      "logits-processors",
      "worker-cls",
      "worker-extension-cls",
      "scheduler-cls",
      "model-class-overrides",
      "model-impl",
      "forward-hooks",
      "sidecar*",
      "custom-weight-loader",
      "warmups",
      "radix-cache-backend",
      "enable-custom-logit-processor",
      "plugins",
      "vllm-plugins",
      "sglang-plugins",
      "sglang-external-*",
      "sagemaker-*",
      "custom-*",
      "aux-output-*"
    ],
    why: loadsCode
  },
  { names: ["model", "model-path", "model-tag"], why: own("the source of the deployment") },
  { names: ["served-model-name"], why: own("the model's name") },
  { names: ["host", "port"], why: "Seatrial sets it itself, because gateways and network policies rely on the engine's address and port" },
  { names: ["tensor-parallel-size", "tp", "tp-size", "pipeline-parallel-size", "pp", "pp-size"], why: own("the host class's GPUs") },
  { names: ["max-model-len", "context-length"], why: own("the requested context") },
  { names: ["kv-cache-dtype"], why: own("the requested KV cache type") },
  { names: ["kv-cache-memory-bytes", "max-total-tokens", "num-gpu-blocks-override"], why: "it would override a value that the fit was computed with" },
  {
    names: [
      "tokenizer*",
      "hf-config-path",
      "hf-token",
      "config",
      "config-format",
      "chat-template",
      "completion-template",
      "lora-*",
      "enable-lora",
      "draft-model*",
      "speculative-*",
      "spec-*",
      "decoupled-spec-*",
      "decrypted-draft-*",
      "enable-draft-*",
      "enable-multi-layer-eagle",
      "max-lora*",
      "max-loaded-loras",
      "quantization-param-path",
      "download-dir",
      "load-format",
      "model-loader-extra-config",
      "model-checksum",
      "hf-overrides",
      "json-model-override-args",
      "revision",
      "code-revision",
      "ignore-patterns",
      "pt-load-map-location"
    ],
    why: readsElsewhere
  },
  {
    names: [
      "allowed-local-media-path",
      "allowed-media-domains",
      "media-*",
      "mm-processor-kwargs",
      "trust-request-*",
      "trust-mm-content-hashes",
      "interleave-mm-strings",
      "enable-mm-embeds",
      "enable-prompt-embeds"
    ],
    why: fetches
  },
  {
    names: [
      "kv-transfer*",
      "kv-events*",
      "ec-transfer*",
      "weight-transfer*",
      "disaggregation-*",
      "encoder-*",
      "hicache-*",
      "enable-hierarchical-cache",
      "lmcache*",
      "enable-lmcache",
      "remote-instance-*",
      "load-publish-endpoint",
      "otlp-*",
      "grpc*",
      "smg-grpc*",
      "gated-launch-port",
      "engine-info-bootstrap-port",
      "nccl-port",
      "dist-*",
      "master-*",
      "data-parallel-*",
      "dp-*",
      "nnodes",
      "node-rank",
      "uds",
      "ssl-*",
      "tool-server",
      "use-ray",
      "distributed-executor-backend"
    ],
    why: opensConnections
  },
  {
    names: [
      "api-key",
      "admin-api-key",
      "root-path",
      "fastapi-root-path",
      "allowed-origins",
      "allowed-methods",
      "allowed-headers",
      "allow-credentials",
      "tokens-only",
      "enable-scale-out",
      "enable-sleep-mode",
      "sleep-*",
      "profiler-config",
      "enable-tokenizer-info-endpoint",
      "crash-dump-folder",
      "debug-*",
      "export-metrics-*",
      "log-*",
      "enable-log-*",
      "max-log-len",
      "logging-config*",
      "uvicorn-*",
      "disable-log-*",
      "enable-request-logging",
      "skip-server-warmup",
      "skip-tokenizer-init",
      "allow-auto-truncate",
      "enable-response-store",
      "enable-metrics*",
      "shutdown-timeout",
      "watchdog-*"
    ],
    why: switchesOff
  },
  {
    names: [
      "additional-config",
      "compilation-config",
      "attention-config",
      "kernel-config",
      "structured-outputs-config",
      "quantization-config",
      "model-config",
      "cpu-offload-*",
      "kv-offloading-*",
      "offload-*",
      "swap-space",
      "*-config",
      "*-config-override"
    ],
    why: unbounded
  }
]

/** The command-line spelling of a flag. */
const asArgument = (flag: string) =>
  flag
    .trim()
    .toLowerCase()
    .replace(/^-+/, "")
    .replace(/^no[-_]/, "")
    .replaceAll("_", "-")
    .split(/[.=]/)[0] ?? ""

const matches = (pattern: string, name: string) =>
  pattern.startsWith("*") ? name.endsWith(pattern.slice(1)) : pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern

const reasonOf = ({ commandLine, denied, flags, version }: FlagTable, name: string): string => {
  const ours = name.replaceAll("-", "_")
  if (Object.hasOwn(flags, ours)) return `it is written ${ours}`
  const plain = denied.find(({ names }) => names.some((pattern) => matches(pattern, name)))
  if (plain !== undefined) return plain.why
  if (Object.hasOwn(commandLine, name)) return `this argument of ${version} has not been reviewed`
  // Both engines accept an abbreviated argument name.
  const abbreviated = name.length < 3 ? undefined : denied.flatMap(({ names, why }) => names.map((of) => ({ of, why }))).find(({ of }) => of.startsWith(name))
  if (abbreviated !== undefined) return `${version} would read it as ${abbreviated.of.replace("*", "")}: ${abbreviated.why}`
  return `${version} has no such argument`
}

/** A flag's name for an error message. Shortened, because a caller may send a name as long as the body. */
export const flagLabel = (flag: string): string => flag.slice(0, 128)

/** The first flag that the table does not allow, or whose value is not allowed, with the reason. */
export const flagIssueOf = (table: FlagTable, requested: Readonly<Record<string, unknown>>): FlagIssue | null => {
  for (const [flag, value] of Object.entries(requested)) {
    const known = Object.hasOwn(table.flags, flag) ? table.flags[flag] : undefined
    if (known === undefined) {
      const allowed = Object.keys(table.flags).join(", ")
      const label = flagLabel(flag)
      return { flag: label, message: `${label} is refused: ${reasonOf(table, asArgument(flag))}. ${table.version} takes ${allowed}.` }
    }
    if (!known.takes(value)) return { flag, message: `${flag} must be ${known.expected}.` }
  }
  return null
}
