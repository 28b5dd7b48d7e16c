import type { EngineClient } from "./EngineClient.ts"

/** The engine under trial and the properties that it must have. */
export interface Subject {
  readonly client: EngineClient
  /** The name under which it must serve the model. */
  readonly servedName: string
  /** The name in its list of models, if different. An adapter may be requested by more names. */
  readonly listedName?: string
  /** Whether it accepts any model name by design; absent: it refuses unknown names. */
  readonly takesAnyName?: boolean
  /** Length of the longest context in tokens. */
  readonly maxContext: number
  readonly engineVersion: string
  readonly vocabSize: number
  /** Whether the model has a chat template. Without one, the checks request completions of text. */
  readonly chat: boolean
  /** `<GPU product label> x<count>`. */
  readonly card: string
}

/** All sampling settings, so that neither defaults of the engine nor of the repository change the greedy answer. */
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
