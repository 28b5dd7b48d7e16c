import { assert, describe, it } from "@effect/vitest"
import { FairQueue } from "../../src/routing/FairQueue.ts"
import { FairShares } from "../../src/routing/FairShares.ts"

/** Serves what waits, one after the other, until `count` services have ended. Returns the organizations in the order of service. */
const serve = (shares: FairShares, queue: FairQueue<{ readonly cost: number }>, orgOf: (member: object) => string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, () => {
    const next = queue.takeLightest((org) => shares.startOf(org))
    if (next === undefined) return "none"
    shares.begin(orgOf(next))
    shares.end(orgOf(next), next.cost)
    return orgOf(next)
  })

const stage = () => {
  const orgs = new Map<object, string>()
  const queue = new FairQueue<{ readonly cost: number }>()
  const add = (org: string, cost: number, count = 1) => {
    for (let index = 0; index < count; index++) {
      const member = { cost }
      orgs.set(member, org)
      queue.add(org, member)
    }
  }
  return { shares: new FairShares(), queue, add, orgOf: (member: object) => orgs.get(member) ?? "" }
}

describe("shares of a server", () => {
  it("an organization that comes while another one uses all of the time is next", () => {
    const { add, orgOf, queue, shares } = stage()
    add("greedy", 50, 4)
    assert.deepStrictEqual(serve(shares, queue, orgOf, 2), ["greedy", "greedy"])
    add("modest", 5)
    assert.deepStrictEqual(serve(shares, queue, orgOf, 2), ["modest", "greedy"])
  })

  it("organizations get equal time, not equal numbers of services", () => {
    const { add, orgOf, queue, shares } = stage()
    add("large", 50, 10)
    add("small", 10, 50)
    const served = serve(shares, queue, orgOf, 24)
    assert.deepStrictEqual([served.filter((org) => org === "large").length, served.filter((org) => org === "small").length], [4, 20])
  })

  it("a pause earns no credit: who comes back shares from then on", () => {
    const { add, orgOf, queue, shares } = stage()
    add("back", 10)
    add("steady", 10, 100)
    serve(shares, queue, orgOf, 51)
    add("back", 10, 50)
    const served = serve(shares, queue, orgOf, 20)
    assert.strictEqual(served.filter((org) => org === "back").length, 10)
  })
})
