import { Effect, Exit } from "effect"
import { cutSplits, type ListedToken, type Split, temperatureSplit, wordsAmong } from "../../src/suite/draws/firstWords.ts"
import { countsOf } from "../../src/suite/pathDraws.ts"
import { judgeCounts } from "../../src/suite/samplingDistribution.ts"
import { extentOf, tinyParameters } from "../../src/suite/thresholds.ts"
import { drawFrom, type Shape } from "./drawnStarts.ts"

const { pathDraws } = extentOf(tinyParameters)

/** Number of tokens that an engine lists. */
export const listed = 20

export const splitsOf = (tokens: ReadonlyArray<ListedToken>): ReadonlyArray<Split> => {
  const top = tokens.slice(0, listed)
  const temperature = temperatureSplit(wordsAmong(top), top)
  return [...(temperature === null ? [] : [temperature]), ...cutSplits(top)]
}

/** Requests at once. */
const batch = 32

/**
 * Simulates an engine that shapes the tokens so. Each call is one run of a row: whether it alarms. `tokensOf`: the tokens
 * of a batch.
 */
export const runOf = (
  splits: ReadonlyArray<Split>,
  tokensOf: () => ReadonlyArray<ListedToken>,
  shaped: (shape: Shape, way: string) => Shape,
  unit: () => number
) => {
  const ways = splits.flatMap((split) => ["whole", "streamed"].map((way) => ({ split, way })))
  return () => {
    const counts = ways.flatMap(({ split, way }) => {
      const batches = Math.ceil((split.field === "temperature" ? pathDraws : pathDraws / 4) / batch)
      const drawn = Array.from({ length: batches }, () => Array.from({ length: batch }, drawFrom(tokensOf(), shaped(split.fields, way), unit)))
      return countsOf(split, way, drawn.flat())
    })
    return Exit.isFailure(Effect.runSyncExit(judgeCounts(counts)))
  }
}

/** The step between logits of 16 bits, in nats. */
const rounding = 0.125

/** Logits as a batch may round them: each of the likeliest tokens is off by up to a step, up or down. */
export const rounded = (tokens: ReadonlyArray<ListedToken>, unit: () => number): ReadonlyArray<ListedToken> =>
  tokens
    .map(({ logprob, text }, at) => ({ text, logprob: at < listed ? logprob + (2 * unit() - 1) * rounding : logprob }))
    .toSorted((a, b) => b.logprob - a.logprob)
