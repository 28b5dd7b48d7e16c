import { Schema } from "effect"

/** A number of tokens in a usage report. */
export const TokenCount = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
