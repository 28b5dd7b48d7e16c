import type { Fidelity, NamedFailure } from "@seatrial/domain"
import { Effect } from "effect"
import type { EngineUnreachable, Unexpected } from "../EngineClient.ts"
import { greedy, type Subject, textPath } from "../Subject.ts"
import { chatPath } from "../suite/SuiteSubject.ts"
import { type FidelityItem, fidelityItems, fidelitySuite } from "./items.ts"
import { divergenceOf, fidelityFailure, fidelityOf, type ItemOutcome, type MergedAgreement, mergeFailure, tierOf } from "./rules.ts"

/** Requests at once: the same for all three models, since an engine may answer otherwise in a larger batch. */
const concurrency = 8

/**
 * Answers of one model to every item, in order; where reasoning is apart it stands before the answer, and a zero byte between them. They are the model's own words:
 * keep them in memory, and no longer than the comparison takes.
 */
export type ItemAnswers = ReadonlyArray<string>

const answerOf = (said: string): string => said.slice(said.indexOf("\0") + 1)

/**
 * Asks every item. One that the engine fails is asked once more; if it fails again, so does this. `quiet`: fields that turn thinking off, where it can be. `salt`: what
 * keeps the answers from what was cached before.
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
      const asked = chat
        ? client.ask(chatPath, { ...common, ...quiet, messages: [{ role: "user", content: question }] })
        : client.ask(textPath, { ...common, prompt: question })
      return Effect.map(Effect.retry(asked, { times: 1 }), ({ content, reasoning }) => (reasoning === "" ? content : `${reasoning}\0${content}`))
    },
    { concurrency }
  )
}

interface Compared {
  readonly child: ItemAnswers
  readonly adapter: ItemAnswers
  readonly base: ItemAnswers
}

/** How each item went that all three have answered. */
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

/** What of the three models is known beside their answers. */
export interface Circumstances {
  readonly baseQuantized: boolean
  /** Whether the engine took every module of the adapter. */
  readonly everyModule: boolean
  readonly merged: MergedAgreement | null
}

/** What the merged model has answered, and what else a comparison with it has to know. Held in memory alone, since the answers are a model's own words. */
export interface MergedModel extends Circumstances {
  readonly answers: ItemAnswers
  /** What it says of the suite's own texts (`scoreTexts`); null where its engine tells no log-probabilities of prompts. */
  readonly scores: ReadonlyArray<number> | null
}

export interface FidelityReport {
  readonly fidelity: Fidelity
  /** Null where the adapter is as it should be. */
  readonly failure: NamedFailure | null
}

/** Compares the answers of the three to the same items. Only counts remain. `measuredAt`: Unix milliseconds of the last answer. */
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
