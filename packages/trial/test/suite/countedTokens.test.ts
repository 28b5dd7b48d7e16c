import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { countedFields, leadIn } from "../../src/suite/countedTokens.ts"
import type { Pair } from "../../src/suite/penalties.ts"
import { thresholds } from "../../src/suite/thresholds.ts"

const pair: Pair = [7, 9]

const readSettings = Schema.decodeUnknownSync(Schema.Struct({ frequency_penalty: Schema.Number, logit_bias: Schema.Record(Schema.String, Schema.Number) }))

interface Answering {
  readonly length: number
  /** How much likelier the model makes the first token, in nats. */
  readonly preferred: number
  /** Place at which the counts are lost; -1: never. */
  readonly lostAt: number
}

const settingsFor = (length: number) => {
  const { frequency_penalty, logit_bias } = readSettings(countedFields(length, pair))
  return { penalty: frequency_penalty, bias: (id: number) => logit_bias[String(id)] ?? 0 }
}

/** The answer of an engine that subtracts the penalty for each token since the counts were lost. */
const answerOf = ({ length, lostAt, preferred }: Answering): ReadonlyArray<number> => {
  const { bias, penalty } = settingsFor(length)
  const ids: Array<number> = []
  let from = 0
  while (ids.length < length) {
    if (ids.length === lostAt) from = lostAt
    const logit = (id: number) => bias(id) - penalty * ids.slice(from).filter((each) => each === id).length
    const [first, second] = pair
    ids.push(logit(first) + preferred >= logit(second) ? first : second)
  }
  return ids
}

const number = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const limit = 1 / 3 + thresholds.leadApart

describe("a frequency penalty that counts all tokens of an answer", () => {
  it.prop("leads to the planned lead, whatever the model prefers by up to 6 nats", [number(38, 1_000), number(-60, 60)], ([length, tenths]) => {
    const lead = leadIn(answerOf({ length, preferred: tenths / 10, lostAt: -1 }), pair)
    return Math.abs(lead - 1 / 3) <= thresholds.leadApart
  })

  it.prop("does not lead to it if the counts are lost in the middle of the answer", [number(38, 1_000), number(20, 80)], ([length, percent]) => {
    return leadIn(answerOf({ length, preferred: 0, lostAt: Math.floor((percent * length) / 100) }), pair) > limit
  })

  it.each([24, 88, 210, 1_000])("is one that engines accept, and leaves both tokens far likelier than all others: %i tokens", (length) => {
    const { bias, penalty } = settingsFor(length)
    assert.isAtMost(penalty, 2)
    assert.isAtLeast(bias(pair[0]) - (penalty * length * 2) / 3, 50)
    assert.isAtLeast(bias(pair[1]) - (penalty * length) / 3, 50)
  })
})
