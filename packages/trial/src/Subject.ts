import type { EngineClient } from "./EngineClient.ts"

/** What a trial is made against: one engine, and what it must be. */
export interface Subject {
  readonly client: EngineClient
  /** The name that it must serve the model under. */
  readonly servedName: string
  /** The name that its list of models shows where that is another; an adapter may be asked for by more than its name. */
  readonly listedName?: string
  /** Whether it answers by any other name too, of its own nature; absent: it refuses them. */
  readonly takesAnyName?: boolean
  /** Tokens of its longest context. */
  readonly maxContext: number
  readonly engineVersion: string
  readonly vocabSize: number
  /** Whether the model has a chat template; without one it is asked to complete text. */
  readonly chat: boolean
  /** `<GPU product label> x<count>`. */
  readonly card: string
}

/** Every knob set, so that neither the engine's defaults nor the repository's change what is greedy. */
export const greedy = {
  temperature: 0,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  seed: 0,
  n: 1
} as const

export const textPath = "/v1/completions"
