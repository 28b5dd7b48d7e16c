import { assert, describe, it } from "@effect/vitest"
import { RoutedRequest } from "../../src/routing/RoutedRequest.ts"
import { endpointsOf, laterRevision, makePool } from "./pool.ts"

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
    streamed: true,
    sequences: 1
  })
  assert.isTrue(routedRequest.enter())
  return routedRequest
}

describe("while a model moves to a new revision", () => {
  const retiring = { revisionId: laterRevision, hfRevision: "e".repeat(40), engineVersion: "reference-0" }
  const moving = (own: ReadonlyArray<string>, others: ReadonlyArray<string>) => {
    const model = makePool(own)
    model.world.route = { ...model.world.route, endpoints: [...endpointsOf(own), ...endpointsOf(others).map((endpoint) => ({ ...endpoint, retiring }))] }
    model.pool.dispatch()
    return model
  }

  it("a request names the revision of the engine that it got", () => {
    const model = moving(["new"], ["old"])
    const requests = Array.from({ length: 16 }, () => entered(model))
    const revisions = Object.fromEntries(requests.map(({ route, url }) => [url, [route.revisionId, route.hfRevision, route.engineVersion]]))
    const { engineVersion, hfRevision, revisionId } = model.world.route
    assert.deepStrictEqual(revisions, {
      "http://new:8000": [revisionId, hfRevision, engineVersion],
      "http://old:8000": [retiring.revisionId, retiring.hfRevision, retiring.engineVersion]
    })
  })

  it("a second attempt goes to an engine of the same revision only", () => {
    const [alone, several] = [moving(["new"], ["old"]), moving(["new", "newer"], ["old"])]
    assert.isFalse(entered(alone).retry("lost"))
    for (let count = 0; count < 3; count++) {
      const routedRequest = entered(several)
      const { revisionId } = routedRequest.route
      const could = routedRequest.retry("lost")
      assert.strictEqual(could, revisionId !== laterRevision)
      assert.strictEqual(routedRequest.url.includes("old"), !could)
    }
  })

  it("an engine keeps its requests when its revision becomes the earlier one", () => {
    const model = makePool(["a"])
    const before = entered(model)
    const { revisionId } = model.world.route
    const endpoints = [...endpointsOf(["b"]), ...endpointsOf(["a"]).map((endpoint) => ({ ...endpoint, retiring: { ...retiring, revisionId } }))]
    model.world.route = { ...model.world.route, revisionId: laterRevision, endpoints }
    model.pool.dispatch()
    const load = () => model.pool.engines.map((engine) => [engine.endpoint.pod, engine.outstanding])
    assert.deepStrictEqual(load(), [
      ["b", 0],
      ["a", 1]
    ])
    before.leave()
    assert.deepStrictEqual(load(), [
      ["b", 0],
      ["a", 0]
    ])
    assert.strictEqual(before.route.revisionId, revisionId)
  })
})

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
