import { assert, describe, it } from "@effect/vitest"
import { PodAddresses } from "../../src/node/PodAddresses.ts"

describe("PodAddresses", () => {
  it("a pod keeps its address, and no two pods share one", () => {
    const addresses = new PodAddresses("127.77")
    assert.isTrue(addresses.keep("old", "127.77.0.2"))
    assert.strictEqual(addresses.take("new"), "127.77.0.3")
    assert.strictEqual(addresses.take("old"), "127.77.0.2")
    assert.strictEqual(addresses.take("new"), "127.77.0.3")
  })
  it("an address of another network or another pod is not reserved", () => {
    const addresses = new PodAddresses("127.77")
    assert.isFalse(addresses.keep("a", "127.7.0.2"))
    assert.isFalse(addresses.keep("a", "10.0.0.1"))
    assert.isTrue(addresses.keep("a", "127.77.0.9"))
    assert.isFalse(addresses.keep("b", "127.77.0.9"))
  })
  it("a released address is reused only after all others", () => {
    const addresses = new PodAddresses("127.77")
    const first = addresses.take("first")
    addresses.release("first")
    const assigned = new Set<string>()
    for (let number = 0; ; number++) {
      const address = addresses.take(String(number))
      if (address === undefined || address === first) break
      assigned.add(address)
    }
    assert.isAbove(assigned.size, 64_000)
    for (const address of assigned) assert.match(address, /^127\.77\.(\d|\d\d|1\d\d|2[0-4]\d|25[0-4])\.([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-4])$/)
  })
  it("a full network has no address until one is released", () => {
    const addresses = new PodAddresses("127.77")
    let last = ""
    for (let number = 0; addresses.take(String(number)) !== undefined; number++) last = String(number)
    assert.isUndefined(addresses.take("late"))
    addresses.release(last)
    assert.isDefined(addresses.take("late"))
  })
})
