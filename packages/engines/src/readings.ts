import type { Runtime } from "@seatrial/domain"
import { piecesOf, type StartFailure } from "./engineLog.ts"
import { parsersNamed } from "./parsers.ts"
import { sglangLines, sglangMetrics } from "./sglang/readings.ts"
import { sglangStartFailures } from "./sglang/startFailures.ts"
import { vllmCacheLabels, vllmLines, vllmMetrics } from "./vllm/readings.ts"
import { vllmStartFailures } from "./vllm/startFailures.ts"

/** All that we read of an engine or say to it beside arguments: what has to be in its sources. */
export interface EngineReadings {
  /** Pieces of lines of its log, which stand one after the other in one text of its sources. */
  readonly lines: ReadonlyArray<ReadonlyArray<string>>
  readonly metrics: ReadonlyArray<string>
  readonly paths: ReadonlyArray<string>
  readonly parsers: { readonly reasoning: ReadonlyArray<string>; readonly toolCalls: ReadonlyArray<string> }
}

const linesOf = (lines: Readonly<Record<string, string>>, failures: ReadonlyArray<StartFailure>) => [
  ...Object.values(lines).map(piecesOf),
  ...failures.flatMap(({ by, sign, source = sign }) => (by === undefined ? [source] : []))
]

/** By runtime, for the test that looks into the engines' own packages. */
export const engineReadings: Readonly<Record<Exclude<Runtime, "reference">, EngineReadings>> = {
  vllm: {
    lines: linesOf(vllmLines, vllmStartFailures),
    metrics: [...Object.values(vllmMetrics), ...Object.values(vllmCacheLabels)],
    paths: ["/health", "/v1/models", "/metrics", "/version", "/v1/chat/completions", "/v1/completions"],
    parsers: parsersNamed("vllm")
  },
  sglang: {
    lines: linesOf(sglangLines, sglangStartFailures),
    metrics: Object.values(sglangMetrics),
    paths: [
      ...["/health", "/ready", "/v1/models", "/metrics", "/v1/chat/completions", "/v1/completions"],
      // Of the values that it has loaded, with what is said to it and read of it.
      ...["/get_weights_by_name", "truncate_size", "/weights_checker", "checksum", "per_engine_checksum"]
    ],
    parsers: parsersNamed("sglang")
  }
}
