import type { TrialMetrics, TrialOffers } from "@seatrial/domain"
import { Effect } from "effect"
import type { EngineClient } from "../EngineClient.ts"
import type { EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import { gauge } from "../gauge.ts"
import { scoreOf } from "./SuiteSubject.ts"
import { likelihoodTexts } from "./texts/likelihoodTexts.ts"

/**
 * The texts of probes, by their place among the suite's texts. Only those in ASCII: their number of tokens is at most
 * their number of characters.
 */
const probed = likelihoodTexts.flatMap(({ text }, index) => (/^[ -~\n]*$/u.test(text) ? [index] : []))

/** The last tokens may be different ones, because the trial cuts each text at another place. */
const leftOut = 2
/** Fewer tokens show too little. */
const leastTokens = 16

/** A token has fewer characters in the mean. */
const charactersOfToken = 5

/** The part of the text with so many tokens that fits into the context, cut between two words. */
const fitting = (text: string, tokens: number, maxContext: number): string => {
  const most = Math.floor(Math.min(maxContext * 0.9, tokens * charactersOfToken))
  return text.length <= most ? text : text.slice(0, Math.max(0, text.lastIndexOf(" ", most)))
}

/** The log-probabilities of the probed texts at the trial; null if they belong to other texts. */
export const probedLikelihood = (likelihood: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<Float32Array> | null =>
  likelihood.length === likelihoodTexts.length ? probed.map((index) => Float32Array.from(likelihood[index] ?? [])) : null

export interface ProbedEngine {
  readonly client: EngineClient
  readonly servedName: string
  readonly offers: TrialOffers
  readonly metrics: TrialMetrics
  readonly maxContext: number
}

/** Requests of an engine. `all`: those that it runs or queues. */
export interface ReportedRequests {
  readonly all: number
  readonly waiting: number
}

/** The requests as the engine reports them; null if it does not. */
export const reportedRequests = ({ client, metrics }: ProbedEngine): Effect.Effect<ReportedRequests | null, EngineUnreachable> =>
  Effect.map(client.get("/metrics"), ({ text }) => {
    const all = gauge(text, metrics.requests)
    return all === null ? null : { all, waiting: gauge(text, metrics.waiting) ?? all }
  })

/**
 * The mean difference per token between the log-probabilities of one text now and at the trial, in nats. NaN if the
 * engine reports values that are no numbers; null if the text cannot be compared. `turn` selects the text.
 */
export const likelihoodDistance = Effect.fnUntraced(function* (
  engine: ProbedEngine,
  verified: ReadonlyArray<Float32Array>,
  turn: number,
  salt: string
): Effect.fn.Return<number | null, EngineUnreachable | Unexpected> {
  const at = turn % probed.length
  const [expected, { text } = { text: "" }] = [verified[at], likelihoodTexts[probed[at] ?? 0]]
  if (expected === undefined) return null
  const values = yield* scoreOf({ ...engine, salt }, fitting(text, expected.length, engine.maxContext))
  if (values === null) return null
  const compared = Math.min(values.length, expected.length) - leftOut
  if (compared < leastTokens) return null
  let sum = 0
  for (let token = 0; token < compared; token++) sum += Math.abs((values[token] ?? 0) - (expected[token] ?? 0))
  return sum / compared
})
