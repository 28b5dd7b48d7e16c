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

  it("is made for every closed connection of an engine that is well, each request's once", () => {
    const model = makePool(["a"])
    const asked = times(100, () => {
      const routedRequest = entered(model)
      const could = routedRequest.retry("stale")
      assert.isFalse(routedRequest.retry("stale"))
      routedRequest.leave()
      return could
    })
    assert.deepStrictEqual([asked, model.pool.engines[0]?.outstanding], [100, 0])
  })

  it("for one model whose engines fail takes none from another's, nor from its own closed connections", () => {
    const failing = makePool(["a", "b"])
    const another = (model: typeof failing, why: "lost" | "stale" | "full") => {
      const routedRequest = entered(model)
      const could = routedRequest.retry(why)
      routedRequest.leave()
      // What failed too often would be out.
      model.world.now += 11_000
      return could
    }
    const made = times(40, () => another(failing, "lost"))
    // Ten in hand, and a tenth of the forty.
    assert.isTrue(made >= 10 && made <= 14, String(made))
    assert.isAtMost(
      times(5, () => another(failing, "full")),
      1
    )
    assert.isTrue(another(failing, "stale"))
    assert.isTrue(another(makePool(["a", "b"]), "lost"))
  })

  it("is made at the same engine where a connection was closed at once: who ends engines by it has the others at their price only", () => {
    const model = makePool(["a", "b"])
    const ended = times(40, () => {
      const routedRequest = entered(model)
      const first = routedRequest.url
      assert.isTrue(routedRequest.retry("stale"))
      assert.strictEqual(routedRequest.url, first)
      // It is no more, or ends by this once again.
      const could = routedRequest.retry(model.world.now % 2 === 0 ? "lost" : "stale")
      assert.strictEqual(routedRequest.url !== first, could)
      assert.isFalse(routedRequest.retry("lost"))
      routedRequest.leave()
      model.world.now += 11_001
      return could
    })
    // Ten in hand, and a tenth of the forty.
    assert.isTrue(ended >= 10 && ended <= 14, String(ended))
    assert.deepStrictEqual(
      model.pool.engines.map(({ outstanding }) => outstanding),
      [0, 0]
    )
  })
})
