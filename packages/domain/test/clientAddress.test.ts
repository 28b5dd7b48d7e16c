import { assert, describe, it } from "@effect/vitest"
import { clientBlock, parseNetwork } from "../src/index.ts"

const proxies = ["10.0.0.0/8", "fd00::/8"].map(parseNetwork).filter((network) => network !== null)

const cases: ReadonlyArray<readonly [promise: string, peer: string | undefined, forwardedFor: string | undefined, block: string]> = [
  ["without a proxy, the client is the peer, whatever the header claims", "203.0.113.7", "198.51.100.1", "203.0.113.7"],
  ["behind a proxy, the last address counts, not the caller's claims before it", "10.1.2.3", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
  ["behind two proxies, the address before both counts", "10.1.2.3", "1.1.1.1, 198.51.100.1, 10.9.9.9", "198.51.100.1"],
  ["a proxy that forwards no address is the client", "10.1.2.3", undefined, "10.1.2.3"],
  ["text that is not an address ends the search", "10.1.2.3", "198.51.100.1, unknown, 10.9.9.9", "10.9.9.9"],
  ["a port is removed", "10.1.2.3", "198.51.100.1:4711", "198.51.100.1"],
  ["a port after an IPv6 address is removed", "fd00::1", "[2001:db8:1:2:3::4]:4711", "20010db800010002/64"],
  ["an IPv4-mapped IPv6 address is an IPv4 address", "::ffff:10.1.2.3", "::ffff:198.51.100.1", "198.51.100.1"],
  ["all addresses of one IPv6 network are one client", "2001:db8:1:2:ffff::9", undefined, "20010db800010002/64"],
  ["a closed connection has no address", undefined, "198.51.100.1", "unknown"]
]

describe("the client's address", () => {
  for (const [promise, peer, forwardedFor, block] of cases) it(promise, () => assert.strictEqual(clientBlock(peer, forwardedFor, proxies), block))

  it("is the peer if no proxy is trusted", () => assert.strictEqual(clientBlock("10.1.2.3", "198.51.100.1", []), "10.1.2.3"))
})
