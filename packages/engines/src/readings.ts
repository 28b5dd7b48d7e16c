import type { Runtime } from "@seatrial/domain"
import { piecesOf, type StartFailure } from "./engineLog.ts"
import { parsersNamed } from "./parsers.ts"
import { sglangLines, sglangMetrics } from "./sglang/readings.ts"
import { sglangStartFailures } from "./sglang/startFailures.ts"
import { sglangHealthPath, sglangWire } from "./sglang/wire.ts"
import { vllmCacheLabels, vllmLines, vllmMetrics } from "./vllm/readings.ts"
import { vllmStartFailures } from "./vllm/startFailures.ts"
import { vllmWire } from "./vllm/wire.ts"

/**
 * Everything that Seatrial reads from an engine or sends to it, apart from arguments. A test looks it up in the
 * engine's sources.
 */
export interface EngineReadings {
  /** Parts of log lines. The parts of one line follow each other in one text of the sources. */
  readonly lines: ReadonlyArray<ReadonlyArray<string>>
  readonly metrics: ReadonlyArray<string>
  readonly paths: ReadonlyArray<string>
  readonly parsers: { readonly reasoning: ReadonlyArray<string>; readonly toolCalls: ReadonlyArray<string> }
}

const linesOf = (lines: Readonly<Record<string, string>>, failures: ReadonlyArray<StartFailure>) => [
  ...Object.values(lines).map(piecesOf),
  ...failures.flatMap(({ by, sign, source = sign }) => (by === undefined ? [source] : []))
]

/** By runtime, for the test that searches the packages of the engines. */
export const engineReadings: Readonly<Record<Exclude<Runtime, "reference">, EngineReadings>> = {
  vllm: {
    lines: linesOf(vllmLines, vllmStartFailures),
    metrics: [...Object.values(vllmMetrics), ...Object.values(vllmCacheLabels)],
    paths: [vllmWire.livenessPath, "/v1/models", "/metrics", "/version", "/v1/chat/completions", "/v1/completions"],
    parsers: parsersNamed("vllm")
  },
  sglang: {
    lines: linesOf(sglangLines, sglangStartFailures),
    metrics: Object.values(sglangMetrics),
    paths: [
      ...[sglangHealthPath, sglangWire.livenessPath, "/v1/models", "/metrics", "/v1/chat/completions", "/v1/completions"],
      // To compare the loaded weights: paths, and members of requests and answers.
      ...["/get_weights_by_name", "truncate_size", "/weights_checker", "checksum", "per_engine_checksum"]
    ],
    parsers: parsersNamed("sglang")
  }
}
