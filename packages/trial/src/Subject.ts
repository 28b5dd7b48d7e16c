import type { Effect } from "effect"
import type { EngineClient, EngineUnreachable, StreamedAnswer, Unexpected } from "./EngineClient.ts"

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

export interface Asking {
  readonly max_tokens: number
  readonly ignore_eos?: boolean
}

const chatPath = "/v1/chat/completions"
export const textPath = "/v1/completions"

/** Path and body that put one user's message, or a text to be gone on with, to the engine. */
export const question = ({ chat, servedName }: Subject, words: string, asking: Asking): readonly [path: string, body: object] =>
  chat
    ? [chatPath, { model: servedName, messages: [{ role: "user", content: words }], ...greedy, ...asking }]
    : [textPath, { model: servedName, prompt: words, ...greedy, ...asking }]

export const askStreamed = (subject: Subject, words: string, asking: Asking): Effect.Effect<StreamedAnswer, EngineUnreachable | Unexpected> =>
  subject.client.stream(...question(subject, words, asking))

/** Token ids in the middle of the vocabulary, where no tokenizer keeps its special ones; the same for the same seed. */
export const tokenIds = (subject: Pick<Subject, "vocabSize">, length: number, seed: number): ReadonlyArray<number> => {
  const low = Math.floor(subject.vocabSize / 4)
  const span = Math.max(1, Math.floor(subject.vocabSize / 2))
  let state = (seed * 2_654_435_761 + 1) >>> 0
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return low + (state % span)
  })
}
