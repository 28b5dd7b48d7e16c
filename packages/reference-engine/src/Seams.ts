import type { LowRank } from "./Adapter.ts"
import type { Llama } from "./Llama.ts"
import type { ModelConfig } from "./ModelConfig.ts"
import type { Random } from "./Random.ts"
import type { SamplingSettings, StepLogprobs } from "./Sampler.ts"
import type { Tensor } from "./Tensor.ts"
import type { ThoughtStart } from "./ThoughtReader.ts"

/** The context of one computed token. */
export interface StepPlace {
  /** The identity of the request. */
  readonly request: object
  /** The prompt of the request and its generated tokens so far. */
  readonly tokens: ReadonlyArray<number>
  readonly promptLength: number
  readonly cachedTokens: number
  /** The number of running requests, including this one. */
  readonly running: number
  readonly sampling: SamplingSettings
  /** Whether the request asks for log-probabilities. */
  readonly reports: boolean
}

/** What happens to a request before it is read. */
export type Reception = "serve" | "fail" | "hang" | "drop" | "missing"

/** Transforms what an engine sends for one choice: a complete JSON answer, or one frame of a stream, as text. */
export type Sending = (text: string, part: "whole" | "frame") => ReadonlyArray<string>

/**
 * The places at which a test can inject a fault, to prove that a check detects it. In production all are absent. An
 * engine with an injected fault reports it in its log and version.
 */
export interface Seams {
  readonly config?: (config: ModelConfig) => ModelConfig
  /** Changes a tensor that was read from the files. */
  readonly loaded?: (name: string, tensor: Tensor) => Tensor
  readonly adapter?: (pairs: ReadonlyMap<string, LowRank>) => ReadonlyMap<string, LowRank>
  /** Called once for each model. */
  readonly model?: (model: Llama) => void
  /** Returns the position whose angles are used. Called before the next tokens of a sequence are computed. `tokens`: all of it. */
  readonly position?: (position: number, promptLength: number, tokens: ReadonlyArray<number>) => number
  /** Changes the keys and values of one position before they are stored. */
  readonly storedKeys?: (keys: Float32Array, values: Float32Array) => void
  /** Returns the tokens that identify a cache block. */
  readonly blockTokens?: (tokens: ReadonlyArray<number>) => ReadonlyArray<number>
  /** True: cache blocks are found after any other tokens. */
  readonly findsAfterAny?: boolean
  /** Returns the owner whose prefixes a request shares. */
  readonly shares?: (owner: string) => string
  /** Changes the tokens of a preempted sequence. */
  readonly preempted?: (tokens: Array<number>) => void
  readonly sampling?: (settings: SamplingSettings) => SamplingSettings
  readonly seed?: (seed: number | null) => number | null
  /** Returns the random numbers of a sequence. */
  readonly random?: (random: Random) => Random
  /** Changes the logits of the model. */
  readonly computed?: (logits: Float32Array, place: StepPlace) => void
  /** Changes the logits after the log-probabilities were taken. */
  readonly chosenFrom?: (logits: Float32Array, place: StepPlace) => void
  readonly chosen?: (id: number, place: StepPlace) => number
  readonly reported?: (logprobs: StepLogprobs) => StepLogprobs
  /** Changes the tokens of a prompt, given the path of the request. */
  readonly prompt?: (ids: ReadonlyArray<number>, path: string) => ReadonlyArray<number>
  /** Changes the output of the chat template. */
  readonly rendered?: (text: string) => string
  readonly detokenized?: (text: string) => string
  /** Changes the body of a request before it is read. */
  readonly got?: (path: string, body: string) => string
  /** Called for each answer. */
  readonly sending?: () => Sending
  /** False: events of this type are left out of the streams of messages and responses. */
  readonly sendsEvent?: (type: string) => boolean
  /** Changes the result of a token count. */
  readonly counted?: (tokens: number) => number
  readonly reception?: (path: string) => Reception
  readonly keepsMask?: (streamed: boolean) => boolean
  readonly readsCalls?: boolean
  /** Changes how separated reasoning begins; null: none is separated. */
  readonly thought?: (start: ThoughtStart | null, streamed: boolean, path: string) => ThoughtStart | null
  /** False: a grammar has no effect after reasoning. */
  readonly bindsAfterThought?: boolean
  /** False: text is sent although a stop string may begin in it. */
  readonly holdsStops?: boolean
  /** True: each token's bytes are decoded separately. */
  readonly splitsCharacters?: boolean
  /** Minimum number of tokens per chunk while more tokens follow. */
  readonly chunkTokens?: number
  /** True: special tokens are sent as text. */
  readonly showsSpecial?: boolean
  /** True: an answer continues although its client disconnected. */
  readonly ignoresAborts?: boolean
  /** True: aborted requests keep their memory. */
  readonly leaks?: boolean
  /**
   * `slack`: how many tokens a request may differ from the reported limit. `cuts`: longer requests are silently
   * shortened.
   */
  readonly limit?: { readonly slack: number; readonly cuts: boolean }
  /** Milliseconds before each turn of the scheduler. */
  readonly pause?: () => number
}

/** A fault that a test injects. `name` appears in the log and the version of the engine. */
export interface Fault {
  readonly name: string
  readonly seams: Seams
}

/** An engine without faults. */
export const sound: Seams = {}
