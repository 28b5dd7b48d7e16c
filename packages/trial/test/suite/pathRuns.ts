import { Effect, Exit } from "effect"
import { cutSplits, type ListedToken, type Split, temperatureSplit, wordsAmong } from "../../src/suite/draws/firstWords.ts"
import { countsOf } from "../../src/suite/pathDraws.ts"
import { judgeCounts } from "../../src/suite/samplingDistribution.ts"
import { extentOf, thresholds, tinyParameters } from "../../src/suite/thresholds.ts"
import { drawFrom, type Shape } from "./drawnStarts.ts"

const { pathDraws } = extentOf(tinyParameters)

/** Number of tokens that an engine lists. */
export const listed = 20

export const splitsOf = (tokens: ReadonlyArray<ListedToken>): ReadonlyArray<Split> => {
  const top = tokens.slice(0, listed)
  const temperature = temperatureSplit(wordsAmong(top), top)
  return [...(temperature === null ? [] : [temperature]), ...cutSplits(top)]
}

/** Simulates an engine with these tokens that shapes them so. Each call is one run of a row: whether it alarms. */
export const runOf = (splits: ReadonlyArray<Split>, tokens: ReadonlyArray<ListedToken>, shaped: (shape: Shape, way: string) => Shape, unit: () => number) => {
  const ways = splits.flatMap((split) => ["whole", "streamed"].map((way) => ({ split, way, one: drawFrom(tokens, shaped(split.fields, way), unit) })))
  return () => {
    const counts = ways.flatMap(({ one, split, way }) =>
      countsOf(split, way, Array.from({ length: split.field === "temperature" ? pathDraws : pathDraws / 4 }, one))
    )
    return Exit.isFailure(Effect.runSyncExit(judgeCounts(counts)))
  }
}

/** Every second token is likelier by half of the tolerance, and the next one less likely by as much. */
export const rounded = (tokens: ReadonlyArray<ListedToken>): ReadonlyArray<ListedToken> =>
  tokens
    .map(({ logprob, text }, at) => ({ text, logprob: logprob + (at % 2 === 0 ? 0.5 : -0.5) * thresholds.drawTolerance }))
    .toSorted((a, b) => b.logprob - a.logprob)
