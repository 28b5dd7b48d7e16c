import { randomUUID } from "node:crypto"
import { type CountReasoning, nestedReasoning } from "./Answers.ts"
import type { Arguments } from "./Arguments.ts"
import type { Booted } from "./Boot.ts"
import { log } from "./Log.ts"
import type { ApiError } from "./Protocol.ts"

/** How the engine speaks: in its own way, which is nearly vLLM's, or as another whose place it takes. */
export interface Speech {
  /** What `/version` answers; null where there is no such path. */
  readonly version: string | null
  /** Whether `/health` is refused until a first answer has been made, and `/ready` tells the same. */
  readonly warmsUp: boolean
  /** A line while it boots: the file that speaks, and the text. */
  readonly booting: (source: string, text: string) => void
  /** All that is told once the model is loaded, before requests are taken. */
  readonly loaded: (booted: Booted, settings: Arguments) => void
  readonly serving: (address: string) => void
  readonly stopping: () => void
  readonly failed: (message: string) => void
  /** A fault while it serves. */
  readonly broke: (message: string) => void
  /** A new name for a call of a function. */
  readonly toolCallId: () => string
  /** What ends an answer that is the call of the function asked for by name. */
  readonly finishOfNamedCall: "stop" | "tool_calls"
  /** The member of a message that has what was thought. */
  readonly reasoningName: "reasoning" | "reasoning_content"
  readonly countReasoning: CountReasoning
  /** Whether the ids of the prompt stand with the choice, by a field of their own, rather than with the whole answer. */
  readonly promptIdsInChoice: boolean
  /** Whether it tells values of what it has loaded, and a hash of all. */
  readonly tellsWeights: boolean
  /** More paths to look at: what each answers. */
  readonly told: Readonly<Record<string, (booted: Booted) => unknown>>
  readonly metrics: (booted: Booted) => string
  /** What an answer calls the model, of which a request gave this name or none. */
  readonly nameSaid: (settings: Arguments, asked: string | null | undefined) => string
  readonly error: (error: ApiError) => unknown
}

/** Its own words. */
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
  told: {},
  metrics: ({ cacheConfig, engine, metrics }) => metrics.render(engine.settings.servedModelNames[0], engine.scheduler.gauges(), cacheConfig),
  nameSaid: ({ servedModelNames }, asked) => asked ?? servedModelNames[0],
  error: (error) => error.body()
}
