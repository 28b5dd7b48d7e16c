import type { LowRank } from "./Adapter.ts"
import type { Llama } from "./Llama.ts"
import type { ModelConfig } from "./ModelConfig.ts"
import type { SamplingSettings, StepLogprobs } from "./Sampler.ts"
import type { Tensor } from "./Tensor.ts"
import type { ThoughtStart } from "./ThoughtReader.ts"

/** Where one token is computed. */
export interface StepPlace {
  /** Names its request. */
  readonly request: object
  /** The request's prompt and what it has generated so far. */
  readonly tokens: ReadonlyArray<number>
  readonly promptLength: number
  readonly cachedTokens: number
  /** Requests that are running, this one among them. */
  readonly running: number
}

/** What to do with a request before it is looked at. */
export type Reception = "serve" | "fail" | "hang" | "drop" | "missing"

/** One choice of what an engine sends: a whole JSON answer, or one frame of a stream, as text. */
export type Sending = (text: string, part: "whole" | "frame") => ReadonlyArray<string>

/**
 * The places at which a test can spoil the engine, so that a check is shown to find what it is for. A sound engine has none of them; nothing but a test gives any, and an
 * engine that has some says so in its log and its version.
 */
export interface Seams {
  readonly config?: (config: ModelConfig) => ModelConfig
  /** Changes what was read of the files. */
  readonly loaded?: (name: string, tensor: Tensor) => Tensor
  readonly adapter?: (pairs: ReadonlyMap<string, LowRank>) => ReadonlyMap<string, LowRank>
  /** Called once for each model that was made. */
  readonly model?: (model: Llama) => void
  /** The place whose angles a position is turned by. */
  readonly position?: (position: number, promptLength: number) => number
  /** Changes the keys and values of one position before they are kept. */
  readonly kept?: (keys: Float32Array, values: Float32Array) => void
  /** What a block of the cache is found by, in place of its tokens. */
  readonly blockTokens?: (tokens: ReadonlyArray<number>) => ReadonlyArray<number>
  /** Whose beginnings a request shares. */
  readonly shares?: (owner: string) => string
  /** Changes the tokens of a sequence whose cache was taken from it. */
  readonly preempted?: (tokens: Array<number>) => void
  readonly sampling?: (settings: SamplingSettings) => SamplingSettings
  readonly seed?: (seed: number | null) => number | null
  /** Changes what the model computed. */
  readonly computed?: (logits: Float32Array, place: StepPlace) => void
  /** Changes what is chosen from, behind the back of the log-probabilities. */
  readonly chosenFrom?: (logits: Float32Array, place: StepPlace) => void
  readonly chosen?: (id: number, place: StepPlace) => number
  readonly reported?: (logprobs: StepLogprobs) => StepLogprobs
  /** Tokens of a prompt, by the path that it came on. */
  readonly prompt?: (ids: ReadonlyArray<number>, path: string) => ReadonlyArray<number>
  /** What the chat template gave. */
  readonly rendered?: (text: string) => string
  readonly detokenized?: (text: string) => string
  /** The body of a request, before it is read. */
  readonly got?: (path: string, body: string) => string
  /** Made for each answer. */
  readonly sending?: () => Sending
  /** False: events of that type are left out of the streams of messages and responses. */
  readonly sendsEvent?: (type: string) => boolean
  /** Changes the tokens that are told where a message is only counted. */
  readonly counted?: (tokens: number) => number
  readonly reception?: (path: string) => Reception
  readonly keepsMask?: (streamed: boolean) => boolean
  readonly readsCalls?: boolean
  /** Changes how a thought is taken to begin that is parted from the answer; null: none is parted. */
  readonly thought?: (start: ThoughtStart | null, streamed: boolean, path: string) => ThoughtStart | null
  /** False: a form binds nothing after a thought. */
  readonly bindsAfterThought?: boolean
  /** False: text is sent although a stop string may begin in it. */
  readonly holdsStops?: boolean
  /** True: each token's bytes are made into text alone. */
  readonly splitsCharacters?: boolean
  /** The fewest tokens that are sent at once while more come. */
  readonly chunkTokens?: number
  /** True: special tokens are text. */
  readonly showsSpecial?: boolean
  /** True: an answer goes on although its caller has left. */
  readonly ignoresAborts?: boolean
  /** True: what was aborted keeps its memory. */
  readonly leaks?: boolean
  /** How many tokens longer or shorter than said a request may be; `cuts`: it is shortened in silence. */
  readonly limit?: { readonly slack: number; readonly cuts: boolean }
  /** Milliseconds that a turn of the scheduler waits. */
  readonly pause?: () => number
}

/** An engine as it should be. */
export const sound: Seams = {}
