import type { CheckReport, ModelCapabilities, ModelConfig, ModelReference, TensorPrefix, TrialMetrics, TrialOffers } from "@seatrial/domain"
import { Effect } from "effect"
import type { EngineUnreachable, StreamedAnswer, Unexpected } from "../engineAnswers.ts"
import type { MergedModel } from "../fidelity/compareAnswers.ts"
import { greedy, type Subject, textPath } from "../Subject.ts"
import { type Reading, readAnswer } from "./readAnswer.ts"
import type { Pinned } from "./readPinned.ts"
import { thresholds } from "./thresholds.ts"

/** Facts about the pinned commit that need no engine. */
export interface PinnedRepository extends Pinned {
  readonly commit: string
  readonly config: ModelConfig
  /** The weight files of the commit. */
  readonly weights: ReadonlyArray<{ readonly path: string; readonly size: number }>
  /** Total size of the tensors in bytes, as the file headers state it. */
  readonly weightsBytes: number
  readonly parameters: number
  /** The small files, read from the hub and verified against the commit's hashes. */
  readonly small: ReadonlyMap<string, string>
  /** Whether the chat template supports reasoning, and whether a variable turns it off. */
  readonly thinking: { readonly thinks: boolean; readonly toggle: boolean }
}

/** How the engine was started, as observed in the cluster. */
export interface ObservedStart {
  /** Number of files that were verified against the commit before the engine started; null if none were verified. */
  readonly verifiedFiles: number | null
  readonly readOnly: boolean
  readonly offline: boolean
  /** Whether its arguments name the folder of the pinned commit. */
  readonly localPath: boolean
  /** Whether it runs the image of the revision; null if the node does not report it. */
  readonly ownImage: boolean | null
}

/** The results of an earlier trial of the same commit, GPU type and settings that this trial can be compared with. */
export interface EarlierTrial {
  /** The engine version of that trial if it differs; null if it is the same. */
  readonly otherEngine?: string | null
  readonly fingerprints: CheckReport["fingerprints"]
  /** The engine's hash over all loaded tensors; null or absent if it reported none. */
  readonly loadedChecksum?: string | null
  /** Log-probabilities of the tokens of each text, from the second token on. */
  readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null
}

/** The engine and model that the suite checks. */
export interface SuiteSubject extends Subject {
  /** The name of the base model, if the subject is an adapter that the engine serves together with its base. */
  readonly baseName?: string
  /** The answers of the merged model, to compare the adapter with; absent or null if not known. */
  readonly merged?: MergedModel | null
  /** Separates the prefix cache of this run from other runs. Each run of a check gets a new value. */
  readonly salt: string
  /** Determines the prompts that only this trial has. */
  readonly seed: number
  readonly parameters: number
  /** Number of sequences that the engine runs at the same time. */
  readonly slots: number
  readonly offers: TrialOffers
  /** The metrics that the engine reports. */
  readonly metrics: TrialMetrics
  /** Whether the engine promises answers that do not depend on concurrent requests. */
  readonly batchInvariant: boolean
  readonly capabilities: ModelCapabilities
  readonly repository: PinnedRepository
  /** The first values of some tensors; absent if the engine does not report its loaded values. */
  readonly firstValues?: ReadonlyArray<TensorPrefix>
  /** What an independent implementation computes for the commit; absent or null if there is none. */
  readonly reference?: ModelReference | null
  /** A code if the reference is missing for a known cause. */
  readonly noReference?: string | null
  /** Whether the settings quantize weights or cache although the files are not quantized. */
  readonly reducesPrecision?: boolean
  readonly start: ObservedStart
  /** Newest first. */
  readonly earlier: ReadonlyArray<EarlierTrial>
  /** Reads the number of KV cache tokens from the text of `/metrics`; null if the engine does not report it. */
  readonly cacheTokens: (metrics: string) => number | null
}

export const chatPath = "/v1/chat/completions"

/** Fields of a request in addition to the model, the prompt and the greedy settings. They override these. */
export type Fields = Readonly<Record<string, unknown>> & { readonly max_tokens: number }

/** Turns reasoning on, under the names that templates use for it. */
export const withThinking = { chat_template_kwargs: { enable_thinking: true, thinking: true } } as const

/** Turns reasoning off if the model supports that, under the names that templates use for it. */
export const withoutThinking = ({ repository }: { readonly repository: Pick<PinnedRepository, "thinking"> }): object =>
  repository.thinking.toggle ? { chat_template_kwargs: { enable_thinking: false, thinking: false } } : {}

/** Whether the model may reason before it answers although reasoning is off, so that an answer needs more tokens. */
export const thinksAnyway = ({ repository: { thinking } }: SuiteSubject): boolean => thinking.thinks && !thinking.toggle

/** Whether the model reasons by default. Not every path can turn it off. */
export const mayThink = ({ repository }: SuiteSubject): boolean => repository.thinking.thinks

/** Requests whose answers include reasoning run concurrently: one after the other they would exceed the time limit. */
export const together = (thinks: boolean) => ({ concurrency: thinks ? "unbounded" : 1 }) as const

/** Token limit of an answer that follows reasoning. */
export const roomAfterThought = ({ maxContext }: SuiteSubject, tokens: number): number =>
  Math.min(tokens + thresholds.thinkingTokens, Math.max(tokens, Math.floor(maxContext / 2)))

/** Token limit of an answer, including reasoning if it cannot be turned off. */
export const roomFor = (subject: SuiteSubject, tokens: number): number => (thinksAnyway(subject) ? roomAfterThought(subject, tokens) : tokens)

/** Seconds that this many reasoning passages take at 20 ms per token. */
export const thoughtSeconds = (thoughts: number): number => (thoughts * thresholds.thinkingTokens * thresholds.usualTokenMillis) / 1_000

/** Time limit of a check with this many answers, for models whose reasoning cannot be turned off. */
export const secondsOf =
  (base: number, answers: number) =>
  (subject: SuiteSubject): number =>
    base + (thinksAnyway(subject) ? thoughtSeconds(answers) : 0)

/** Number of sequences at once with which the time limits of many draws suffice. */
const drawnAtOnce = 8

/** The factor for the time of many draws on an engine that runs fewer sequences at once. */
export const drawnSlower = ({ slots }: Pick<SuiteSubject, "slots">): number => Math.max(1, drawnAtOnce / slots)

/** Whether the answer was cut during its reasoning. */
export const stillThinks = ({ content, finishReason, reasoning }: Pick<Reading, "content" | "finishReason" | "reasoning">): boolean =>
  finishReason === "length" && content.trim() === "" && reasoning.trim() !== ""

/** The fields of every request of the suite. */
export const salted = ({ salt, servedName }: Pick<SuiteSubject, "salt" | "servedName">) => ({ model: servedName, cache_salt: salt, ...greedy })

/** A request with one user message, or with a text to continue if the model has no chat template. */
export const questionOf = (subject: SuiteSubject, words: string, fields: Fields): readonly [path: string, body: object] =>
  subject.chat
    ? [chatPath, { ...salted(subject), messages: [{ role: "user", content: words }], ...withoutThinking(subject), ...fields }]
    : [textPath, { ...salted(subject), prompt: words, ...fields }]

export const put = (subject: SuiteSubject, words: string, fields: Fields): Effect.Effect<Reading, EngineUnreachable | Unexpected> =>
  readAnswer(subject.client, ...questionOf(subject, words, fields))

export const putStreamed = (subject: SuiteSubject, words: string, fields: Fields): Effect.Effect<StreamedAnswer, EngineUnreachable | Unexpected> =>
  subject.client.stream(...questionOf(subject, words, fields))

/** A request that continues token ids or a text. */
export const continuation = (subject: Pick<SuiteSubject, "salt" | "servedName">, prompt: Prompt, fields: Fields): object => ({
  ...salted(subject),
  prompt,
  ...fields
})

export const goOn = (
  subject: Pick<SuiteSubject, "client" | "salt" | "servedName">,
  prompt: Prompt,
  fields: Fields
): Effect.Effect<Reading, EngineUnreachable | Unexpected> => readAnswer(subject.client, textPath, continuation(subject, prompt, fields))

/** Sends a conversation through the chat route. */
export const converse = (subject: SuiteSubject, messages: ReadonlyArray<object>, fields: Fields): Effect.Effect<Reading, EngineUnreachable | Unexpected> =>
  readAnswer(subject.client, chatPath, { ...salted(subject), messages, ...fields })

export const converseStreamed = (
  subject: SuiteSubject,
  messages: ReadonlyArray<object>,
  fields: Fields
): Effect.Effect<StreamedAnswer, EngineUnreachable | Unexpected> => subject.client.stream(chatPath, { ...salted(subject), messages, ...fields })

/** The prompt of a continuation: token ids, or text if the tokenizer cannot be read. */
export type Prompt = ReadonlyArray<number> | string

/**
 * Encodes texts with the tokenizer of the model, including its leading tokens. Returns the texts themselves if the
 * tokenizer cannot be read.
 */
export const promptsOf = ({ repository: { tokenizer } }: SuiteSubject, texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Prompt>> =>
  tokenizer === null ? Effect.succeed(texts) : tokenizer.encode(texts, true)

export const promptOf = (subject: SuiteSubject, text: string): Effect.Effect<Prompt> => Effect.map(promptsOf(subject, [text]), ([prompt = text]) => prompt)

/** Log-probabilities of the tokens of a prompt from the second token on, rounded to 4 places. */
export const scoreOf = Effect.fnUntraced(function* (subject: Pick<SuiteSubject, "client" | "offers" | "salt" | "servedName">, prompt: Prompt) {
  const { promptLogprobs } = yield* goOn(subject, prompt, { max_tokens: 1, ...subject.offers.scoring })
  return promptLogprobs?.map((value) => Math.round(value * 1e4) / 1e4) ?? null
})
