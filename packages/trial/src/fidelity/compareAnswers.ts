import type { Fidelity, NamedFailure } from "@seatrial/domain"
import { Effect } from "effect"
import type { EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import { greedy, type Subject, textPath } from "../Subject.ts"
import { chatPath } from "../suite/SuiteSubject.ts"
import { type FidelityItem, fidelityItems, fidelitySuite } from "./items.ts"
import { divergenceOf, fidelityFailure, fidelityOf, type ItemOutcome, type MergedAgreement, mergeFailure, tierOf } from "./rules.ts"

/** Number of concurrent requests: the same for all three models, since answers may depend on the batch size. */
const concurrency = 8

/**
 * Answers of one model to every item, in order. Separate reasoning precedes the answer, followed by a zero byte. They
 * are generated text: keep them only in memory, and only for the comparison.
 */
export type ItemAnswers = ReadonlyArray<string>

const answerOf = (reply: string): string => reply.slice(reply.indexOf("\0") + 1)

/**
 * Sends every item. An item that the engine fails is sent a second time; if it fails again, this fails. `quiet`: fields
 * that turn reasoning off, if the model supports it. `salt`: separates the answers from cached values.
 */
export const answerItems = (
  { chat, client, salt, servedName }: Subject & { readonly salt?: string },
  items: ReadonlyArray<FidelityItem> = fidelityItems,
  quiet: object = {}
): Effect.Effect<ItemAnswers, EngineUnreachable | Unexpected> => {
  const common = { model: servedName, ...(salt === undefined ? {} : { cache_salt: salt }), ...greedy, max_tokens: 64 }
  return Effect.forEach(
    items,
    ({ question }) => {
      const request = chat
        ? client.ask(chatPath, { ...common, ...quiet, messages: [{ role: "user", content: question }] })
        : client.ask(textPath, { ...common, prompt: question })
      return Effect.map(Effect.retry(request, { times: 1 }), ({ content, reasoning }) => (reasoning === "" ? content : `${reasoning}\0${content}`))
    },
    { concurrency }
  )
}

interface Compared {
  readonly child: ItemAnswers
  readonly adapter: ItemAnswers
  readonly base: ItemAnswers
}

/** The result of each item that all three models answered. */
export const outcomesOf = ({ adapter, base, child }: Compared, items: ReadonlyArray<FidelityItem>): ReadonlyArray<ItemOutcome> =>
  items.flatMap(({ isRight }, at) => {
    const [ofChild, ofAdapter, ofBase] = [child[at], adapter[at], base[at]]
    if (ofChild === undefined || ofAdapter === undefined || ofBase === undefined) return []
    return [
      {
        right: { child: isRight(answerOf(ofChild)), adapter: isRight(answerOf(ofAdapter)), base: isRight(answerOf(ofBase)) },
        adapterIsChild: ofAdapter === ofChild,
        baseIsChild: ofBase === ofChild,
        adapterIsBase: ofAdapter === ofBase,
        divergence: divergenceOf(ofAdapter, ofChild)
      }
    ]
  })

/** Facts about the three models other than their answers. */
export interface Circumstances {
  readonly baseQuantized: boolean
  /** Whether the engine applied every module of the adapter. */
  readonly everyModule: boolean
  readonly merged: MergedAgreement | null
}

/**
 * The answers of the merged model and the facts for a comparison with it. Kept only in memory, since the answers are
 * generated text.
 */
export interface MergedModel extends Circumstances {
  readonly answers: ItemAnswers
  /** Its log-probabilities of the suite's texts (`scoreTexts`); null if its engine reports none for prompts. */
  readonly scores: ReadonlyArray<number> | null
}

export interface FidelityReport {
  readonly fidelity: Fidelity
  /** Null if the adapter passes. */
  readonly failure: NamedFailure | null
}

/**
 * Compares the answers of the three models to the same items. Only counts are kept. `measuredAt`: Unix milliseconds of
 * the last answer.
 */
export const compareAnswers = (
  answers: Compared,
  circumstances: Circumstances,
  measuredAt: number,
  items: ReadonlyArray<FidelityItem> = fidelityItems
): FidelityReport => {
  const outcomes = outcomesOf(answers, items)
  const { baseQuantized, merged } = circumstances
  const withinUlpMin = baseQuantized ? null : (merged?.withinUlpMin ?? null)
  const fidelity = fidelityOf({ ...fidelitySuite, outcomes, tier: tierOf(circumstances), withinUlpMin, measuredAt })
  return { fidelity, failure: mergeFailure(merged) ?? fidelityFailure(fidelity, outcomes) }
}
