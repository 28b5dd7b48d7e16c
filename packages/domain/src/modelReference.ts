import { Schema } from "effect"

const Ids = Schema.Array(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)))
/** Rounded to 4 places. */
const Logprobs = Schema.Array(Schema.Finite.check(Schema.isLessThanOrEqualTo(0)))

/** The most sequences of a reference, and the most tokens of one. */
const mostSequences = 64
const mostTokens = 4_096

const DrawnCount = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/**
 * What an independent implementation computes for the weights of a commit. It belongs to the commit and never changes.
 * The arithmetic is in 32 bits.
 */
export const ModelReference = Schema.Struct({
  /** Token IDs, each with the log-probabilities of its tokens from the second on. */
  sequences: Schema.Array(Schema.Struct({ ids: Ids.check(Schema.isMaxLength(mostTokens)), logprobs: Logprobs })).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(mostSequences),
    Schema.makeFilter(
      (sequences) => sequences.every(({ ids, logprobs }) => logprobs.length === ids.length - 1) || "one log-probability for each token but the first"
    )
  ),
  /** How many of the last sequences are drawn for the commit. Absent before version 2 of the texts: none. */
  drawn: Schema.optionalKey(DrawnCount),
  /** Prompts and the likeliest tokens after them. Empty if the weights exceeded the memory. */
  continuations: Schema.Array(Schema.Struct({ prompt: Ids, ids: Ids })).check(Schema.isMaxLength(mostSequences)),
  /** Versions of the packages that computed it. */
  transformers: Schema.String.check(Schema.isMaxLength(64)),
  torch: Schema.String.check(Schema.isMaxLength(64))
}).check(Schema.makeFilter(({ drawn = 0, sequences }) => drawn < sequences.length || "fewer drawn sequences than sequences"))
export type ModelReference = typeof ModelReference.Type
