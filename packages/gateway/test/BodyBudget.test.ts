import { assert, describe, it } from "@effect/vitest"
import { OrgId } from "@seatrial/domain"
import { Schema } from "effect"
import { BodyBudget } from "../src/BodyBudget.ts"

const orgOf = (number: number) => Schema.decodeSync(OrgId)(`org_${String(number).padStart(26, "0")}`)
const kibibyte = 1_024
const chunk = 64 * kibibyte
const budget = 256 * 1_024 * kibibyte

/** Takes bodies of `bytes` each, one request after the other, until one is refused. */
const fill = (bodies: BodyBudget, org: number, bytes: number) => {
  const shares = []
  let bytesHeld = 0
  for (;;) {
    const share = bodies.open(orgOf(org))
    shares.push(share)
    for (let taken = 0; taken < bytes; taken += chunk) {
      const refusal = share.take(chunk)
      if (refusal !== null) return { bytesHeld, refusal, shares }
      bytesHeld += chunk
    }
  }
}

describe("the budget for request bodies", () => {
  it("leaves half to other organizations, however much one sends", () => {
    const bodies = new BodyBudget(budget)
    const { bytesHeld, refusal } = fill(bodies, 1, 16 * 1_024 * kibibyte)
    assert.isAtMost(bytesHeld, budget / 2)
    assert.isAtLeast(bytesHeld, budget * 0.4)
    assert.deepStrictEqual([refusal.status, refusal.code, refusal.retryAfter], [429, "org_concurrency_limited", 2])
    assert.isNull(bodies.open(orgOf(2)).take(16 * 1_024 * kibibyte))
  })

  it("accepts a body of 8 MiB from a fourth organization while three use all they can get", () => {
    const bodies = new BodyBudget(budget)
    for (let org = 1; org <= 3; org++) fill(bodies, org, 16 * 1_024 * kibibyte)
    assert.isNull(bodies.open(orgOf(7)).take(8 * 1_024 * kibibyte))
  })

  it("accepts small bodies while large ones use up their part", () => {
    const bodies = new BodyBudget(budget)
    for (let org = 1; org <= 60; org++) fill(bodies, org, 16 * 1_024 * kibibyte)
    for (let count = 0; count < 50; count++) assert.isNull(bodies.open(orgOf(100)).take(kibibyte))
  })

  it("gets released bytes back", () => {
    const bodies = new BodyBudget(budget)
    const first = fill(bodies, 1, 1_024 * kibibyte)
    for (const share of first.shares) share.release()
    const second = fill(bodies, 1, 1_024 * kibibyte)
    assert.strictEqual(second.bytesHeld, first.bytesHeld)
  })
})
