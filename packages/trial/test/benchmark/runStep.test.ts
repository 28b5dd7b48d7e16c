import { assert, describe, it } from "@effect/vitest"
import type { RequestRecord } from "../../src/benchmark/RequestRecord.ts"
import { silentAreErrors } from "../../src/benchmark/runStep.ts"

const drain = 30_000
const answered = (sentAt: number, ...arrivals: ReadonlyArray<number>): RequestRecord => ({ stream: 0, sentAt, arrivals, outcome: "answered", tokens: 1 })
const cut = (sentAt: number, ...arrivals: ReadonlyArray<number>): RequestRecord => ({ ...answered(sentAt, ...arrivals), outcome: "unfinished", tokens: 0 })

/** What became of the last of the records, of a step that was closed after 75 s and whose engine had 30 s more. */
const outcomeOf = (...records: ReadonlyArray<RequestRecord>) => silentAreErrors({ closedAt: 75_000, endedAt: 105_000, records }, drain).at(-1)?.outcome

describe("a request that was cut without any output", () => {
  it("is an error if the engine sends nothing to any stream", () => {
    assert.strictEqual(outcomeOf(cut(0)), "no_token")
    assert.strictEqual(outcomeOf(answered(0, 20_000), cut(10, 500, 20_000), cut(0)), "no_token")
  })

  it("is an error if a later request received its first token long before", () => {
    assert.strictEqual(outcomeOf(answered(20_000, 21_000, 104_000), cut(0)), "no_token")
  })

  it("is not an error if it was queued: earlier requests received tokens until the end", () => {
    assert.strictEqual(outcomeOf(answered(0, 1_000), answered(1, 60_000, 104_000), cut(2)), "unfinished")
    // Several threads send at the same time, in any order.
    assert.strictEqual(outcomeOf(answered(900, 1_000), answered(1, 60_000, 104_000), cut(0)), "unfinished")
    // A later request that was served a moment ago may have been next in the queue.
    assert.strictEqual(outcomeOf(answered(3_000, 100_000, 104_000), cut(2)), "unfinished")
  })

  it("is not an error if it had less time than every request has", () => assert.strictEqual(outcomeOf(cut(60_000)), "unfinished"))
})
