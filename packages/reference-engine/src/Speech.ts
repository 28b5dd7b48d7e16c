import { randomUUID } from "node:crypto"
import { type CountReasoning, nestedReasoning } from "./Answers.ts"
import type { Arguments } from "./Arguments.ts"
import type { Booted } from "./Boot.ts"
import { log } from "./Log.ts"
import type { ApiError } from "./Protocol.ts"

/**
 * The differences between the reference engine, which is close to vLLM, and an engine that it replaces on simulated
 * GPUs.
 */
export interface Speech {
  /** The answer of `/version`; null if the path does not exist. */
  readonly version: string | null
  /** Whether `/health` is refused until a first answer was generated, and `/ready` exists. */
  readonly warmsUp: boolean
  /** Logs a line during the start. `source`: the file that logs it. */
  readonly booting: (source: string, text: string) => void
  /** Logs what engines report after loading the model, before they accept requests. */
  readonly loaded: (booted: Booted, settings: Arguments) => void
  readonly serving: (address: string) => void
  readonly stopping: () => void
  readonly failed: (message: string) => void
  /** Logs a fault while serving. */
  readonly broke: (message: string) => void
  /** Returns an ID for a tool call. */
  readonly toolCallId: () => string
  /** The finish reason of an answer that calls the function that `tool_choice` names. */
  readonly finishOfNamedCall: "stop" | "tool_calls"
  /** The member of a message that holds the reasoning. */
  readonly reasoningName: "reasoning" | "reasoning_content"
  readonly countReasoning: CountReasoning
  /** Whether prompt token IDs are a member of the choice instead of the answer. */
  readonly promptIdsInChoice: boolean
  /** Whether the engine reports loaded values and their hash. */
  readonly tellsWeights: boolean
  /** Additional read-only paths and their answers. */
  readonly additionalPaths: Readonly<Record<string, (booted: Booted) => unknown>>
  readonly metrics: (booted: Booted) => string
  /** The model name in an answer. `asked`: the name in the request, if any. */
  readonly reportedName: (settings: Arguments, requested: string | null | undefined) => string
  readonly error: (error: ApiError) => unknown
}

/** The reference engine itself. */
export const ownSpeech: Speech = {
  version: "reference-0.1.0",
  warmsUp: false,
  booting: log.info,
  loaded: () => {},
  serving: (address) => {
    log.info("main.ts", `Starting reference server on ${address}`)
    log.info("main.ts", "Application startup complete.")
  },
  stopping: () => log.info("main.ts", "Shutting down"),
  failed: (message) => log.error("main.ts", message),
  broke: (message) => log.error("main.ts", `EngineCore encountered an issue: ${message}`),
  toolCallId: () => `chatcmpl-tool-${randomUUID().replaceAll("-", "")}`,
  finishOfNamedCall: "stop",
  reasoningName: "reasoning",
  countReasoning: nestedReasoning,
  promptIdsInChoice: false,
  tellsWeights: true,
  additionalPaths: {},
  metrics: ({ cacheConfig, engine, metrics }) => metrics.render(engine.settings.servedModelNames[0], engine.scheduler.gauges(), cacheConfig),
  reportedName: ({ servedModelNames }, requested) => requested ?? servedModelNames[0],
  error: (error) => error.body()
}
