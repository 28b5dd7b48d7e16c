import type { CheckReport, ModelCapabilities, ModelConfig, TensorPrefix, TrialOffers } from "@seatrial/domain"
import { Effect } from "effect"
import type { EngineUnreachable, StreamedAnswer, Unexpected } from "../EngineClient.ts"
import type { MergedModel } from "../fidelity/compareAnswers.ts"
import { greedy, type Subject, textPath } from "../Subject.ts"
import { type Reading, readAnswer } from "./readAnswer.ts"
import type { Pinned } from "./readPinned.ts"
import { thresholds } from "./thresholds.ts"

/** What is known of the pinned commit without the engine. */
export interface PinnedRepository extends Pinned {
  readonly commit: string
  readonly config: ModelConfig
  /** Its weight files, as listed at the commit. */
  readonly weights: ReadonlyArray<{ readonly path: string; readonly size: number }>
  /** Bytes of the tensors, as the files' headers state them. */
  readonly weightsBytes: number
  readonly parameters: number
  /** Its small files, read from the hub at the commit and found to have its hashes. */
  readonly small: ReadonlyMap<string, string>
  /** Whether its template has a place for thinking, and a variable that turns it off. */
  readonly thinking: { readonly thinks: boolean; readonly toggle: boolean }
}

/** How the engine was started, as the cluster tells. */
export interface StartSeen {
  /** Files that were looked at before the engine started, and found to be the commit's; null where nobody looked. */
  readonly verifiedFiles: number | null
  readonly readOnly: boolean
  readonly offline: boolean
  /** Whether its words name the pinned commit's folder. */
  readonly localPath: boolean
  /** Whether it runs the image that the revision names; null where its node does not say. */
  readonly ownImage: boolean | null
}

/** What an earlier trial of the same commit found, on the same card with the same settings, as far as this one can be held to it. */
export interface EarlierTrial {
  /** The version of the engine that it was of, where that is another. */
  readonly otherEngine?: string | null
  readonly fingerprints: CheckReport["fingerprints"]
  /** The engine's hash over all tensors that it had loaded; null or absent if it reported none. */
  readonly loadedChecksum?: string | null
  /** Log-probabilities of each text's tokens, from the second on. */
  readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null
}

/** What the suite is run against. */
export interface SuiteSubject extends Subject {
  /** The name of the base alone, where the subject is an adapter that the engine serves beside it. */
  readonly baseName?: string
  /** What base and adapter have to answer like once they are merged; absent or null where that is not known. */
  readonly merged?: MergedModel | null
  /** What the prefix cache is kept apart by: another one for each run of a row. */
  readonly salt: string
  readonly parameters: number
  /** Sequences that the engine runs at once. */
  readonly slots: number
  readonly offers: TrialOffers
  /** Whether its answers are promised not to depend on what runs beside them. */
  readonly batchInvariant: boolean
  readonly capabilities: ModelCapabilities
  readonly repository: PinnedRepository
  /** The first values of some of its tensors, where the engine tells what it has loaded; absent elsewhere. */
  readonly firstValues?: ReadonlyArray<TensorPrefix>
  readonly start: StartSeen
  /** Newest first. */
  readonly earlier: ReadonlyArray<EarlierTrial>
  /** Tokens of the KV cache, from the text of `/metrics`; null where it does not tell. */
  readonly cacheTokens: (metrics: string) => number | null
}

export const chatPath = "/v1/chat/completions"

/** Fields of a request beside model, prompt and what makes it greedy; they override both. */
export type Fields = Readonly<Record<string, unknown>> & { readonly max_tokens: number }

/** What turns a model's thinking on, where it can be turned off: the names that templates have for it. */
export const withThinking = { chat_template_kwargs: { enable_thinking: true, thinking: true } } as const

/** What turns a model's thinking off, where it can be: the names that templates have for it. */
export const withoutThinking = ({ repository }: { readonly repository: Pick<PinnedRepository, "thinking"> }): object =>
  repository.thinking.toggle ? { chat_template_kwargs: { enable_thinking: false, thinking: false } } : {}

/** Whether it may think before it answers although it was asked not to, so that an answer needs room. */
export const thinksAnyway = ({ repository: { thinking } }: SuiteSubject): boolean => thinking.thinks && !thinking.toggle

/** Whether it thinks where nothing says that it shall not: not every path can. */
export const mayThink = ({ repository }: SuiteSubject): boolean => repository.thinking.thinks

/** Answers that are each thought about are asked for at once: one after the other they would take longer than a suite may. */
export const together = (thinks: boolean) => ({ concurrency: thinks ? "unbounded" : 1 }) as const

/** Tokens that an answer may take where it is thought about first: its own, and room for the thought. */
export const roomAfterThought = ({ maxContext }: SuiteSubject, tokens: number): number =>
  Math.min(tokens + thresholds.thinkingTokens, Math.max(tokens, Math.floor(maxContext / 2)))

/** Tokens that an answer may take: its own, and where thinking cannot be turned off room for that too. */
export const roomFor = (subject: SuiteSubject, tokens: number): number => (thinksAnyway(subject) ? roomAfterThought(subject, tokens) : tokens)

/** Seconds that so many thoughts may take at 20 ms a token. */
export const thoughtSeconds = (thoughts: number): number => (thoughts * thresholds.thinkingTokens * thresholds.usualTokenMillis) / 1_000

/** Seconds of a row of so many answers to questions, before each of which a model may think that cannot be kept from it. */
export const secondsOf =
  (base: number, answers: number) =>
  (subject: SuiteSubject): number =>
    base + (thinksAnyway(subject) ? thoughtSeconds(answers) : 0)

/** Whether an answer was cut before a word of it was said. */
export const stillThinks = ({ content, finishReason, reasoning }: Pick<Reading, "content" | "finishReason" | "reasoning">): boolean =>
  finishReason === "length" && content.trim() === "" && reasoning.trim() !== ""

/** What every question of the suite says beside itself. */
export const salted = ({ salt, servedName }: SuiteSubject) => ({ model: servedName, cache_salt: salt, ...greedy })

/** A body that asks with one user's message, or with a text to go on with where the model has no chat template. */
export const questionOf = (subject: SuiteSubject, words: string, fields: Fields): readonly [path: string, body: object] =>
  subject.chat
    ? [chatPath, { ...salted(subject), messages: [{ role: "user", content: words }], ...withoutThinking(subject), ...fields }]
    : [textPath, { ...salted(subject), prompt: words, ...fields }]

export const put = (subject: SuiteSubject, words: string, fields: Fields): Effect.Effect<Reading, EngineUnreachable | Unexpected> =>
  readAnswer(subject.client, ...questionOf(subject, words, fields))

export const putStreamed = (subject: SuiteSubject, words: string, fields: Fields): Effect.Effect<StreamedAnswer, EngineUnreachable | Unexpected> =>
  subject.client.stream(...questionOf(subject, words, fields))

/** A body that has token ids, or a text, gone on with. */
export const continuation = (subject: SuiteSubject, prompt: Prompt, fields: Fields): object => ({
  ...salted(subject),
  prompt,
  ...fields
})

export const goOn = (subject: SuiteSubject, prompt: Prompt, fields: Fields): Effect.Effect<Reading, EngineUnreachable | Unexpected> =>
  readAnswer(subject.client, textPath, continuation(subject, prompt, fields))

/** A whole conversation through the chat route. */
export const converse = (subject: SuiteSubject, messages: ReadonlyArray<object>, fields: Fields): Effect.Effect<Reading, EngineUnreachable | Unexpected> =>
  readAnswer(subject.client, chatPath, { ...salted(subject), messages, ...fields })

export const converseStreamed = (
  subject: SuiteSubject,
  messages: ReadonlyArray<object>,
  fields: Fields
): Effect.Effect<StreamedAnswer, EngineUnreachable | Unexpected> => subject.client.stream(chatPath, { ...salted(subject), messages, ...fields })

/** What an engine goes on with: ids, or a text where we do not read the model's tokenizer. */
export type Prompt = ReadonlyArray<number> | string

/** Texts as the model's own tokenizer makes ids of them, with what stands before every text; the texts themselves where we do not read that tokenizer. */
export const promptsOf = ({ repository: { tokenizer } }: SuiteSubject, texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Prompt>> =>
  tokenizer === null ? Effect.succeed(texts) : tokenizer.encode(texts, true)

/** The same of one text. */
export const promptOf = (subject: SuiteSubject, text: string): Effect.Effect<Prompt> => Effect.map(promptsOf(subject, [text]), ([prompt = text]) => prompt)

/** Log-probabilities of a prompt's tokens from the second on, rounded to 4 places. */
export const scoreOf = Effect.fnUntraced(function* (subject: SuiteSubject, prompt: Prompt) {
  const { promptLogprobs } = yield* goOn(subject, prompt, { max_tokens: 1, ...subject.offers.scoring })
  return promptLogprobs?.map((value) => Math.round(value * 1e4) / 1e4) ?? null
})
