import { assert, describe, it } from "@effect/vitest"
import { RoutedRequest } from "../../src/routing/RoutedRequest.ts"
import { makePool } from "./pool.ts"

const settings = {
  engineConcurrency: 256,
  queueWaitMillis: 10,
  coldWaitMillis: 10,
  coldWaiting: 256,
  scrapeIntervalMillis: 1_000,
  healthIntervalMillis: 2_000,
  hangMillis: 30_000
}

/** A request that has an engine of the pool. */
const entered = ({ pool, world }: ReturnType<typeof makePool>): RoutedRequest => {
  const routedRequest = new RoutedRequest({ settings, poolOf: () => pool, known: () => world.route, now: () => world.now }, world.route, {
    orgId: world.route.orgId,
    members: {},
    streamed: true
  })
  assert.isTrue(routedRequest.enter())
  return routedRequest
}

describe("a second attempt", () => {
  const times = (count: number, act: () => boolean) => Array.from({ length: count }, act).filter((could) => could).length

  it("is made once per request for every closed connection of a healthy engine", () => {
    const model = makePool(["a"])
    const requests = times(100, () => {
      const routedRequest = entered(model)
      const could = routedRequest.retry("stale")
      assert.isFalse(routedRequest.retry("stale"))
      routedRequest.leave()
      return could
    })
    assert.deepStrictEqual([requests, model.pool.engines[0]?.outstanding], [100, 0])
  })

  it("for a model with failing engines does not use the budget of another model, or of its own closed connections", () => {
    const failing = makePool(["a", "b"])
    const secondAttempt = (model: typeof failing, why: "lost" | "stale" | "full") => {
      const routedRequest = entered(model)
      const could = routedRequest.retry(why)
      routedRequest.leave()
      // An engine that failed too often would be ejected.
      model.world.now += 11_000
      return could
    }
    const attempts = times(40, () => secondAttempt(failing, "lost"))
    // Ten from the initial budget, and a tenth of the forty requests.
    assert.isTrue(attempts >= 10 && attempts <= 14, String(attempts))
    assert.isAtMost(
      times(5, () => secondAttempt(failing, "full")),
      1
    )
    assert.isTrue(secondAttempt(failing, "stale"))
    assert.isTrue(secondAttempt(makePool(["a", "b"]), "lost"))
  })

  it("is made on the same engine if a connection was closed at once: a request that crashes engines cannot crash another one for free", () => {
    const model = makePool(["a", "b"])
    const ended = times(40, () => {
      const routedRequest = entered(model)
      const first = routedRequest.url
      assert.isTrue(routedRequest.retry("stale"))
      assert.strictEqual(routedRequest.url, first)
      // The engine has crashed, or crashes again because of this request.
      const could = routedRequest.retry(model.world.now % 2 === 0 ? "lost" : "stale")
      assert.strictEqual(routedRequest.url !== first, could)
      assert.isFalse(routedRequest.retry("lost"))
      routedRequest.leave()
      model.world.now += 11_001
      return could
    })
    // Ten from the initial budget, and a tenth of the forty requests.
    assert.isTrue(ended >= 10 && ended <= 14, String(ended))
    assert.deepStrictEqual(
      model.pool.engines.map(({ outstanding }) => outstanding),
      [0, 0]
    )
  })
})
