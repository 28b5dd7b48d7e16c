import { assert, describe, it } from "@effect/vitest"
import { clientBlock, parseNetwork } from "../src/index.ts"

const proxies = ["10.0.0.0/8", "fd00::/8"].map(parseNetwork).filter((network) => network !== null)

const cases: ReadonlyArray<readonly [promise: string, peer: string | undefined, forwardedFor: string | undefined, block: string]> = [
  ["a client without a proxy is its own address, whatever it claims", "203.0.113.7", "198.51.100.1", "203.0.113.7"],
  ["behind a proxy the last address counts, not the caller's claim before it", "10.1.2.3", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
  ["behind two proxies it is the one before both", "10.1.2.3", "1.1.1.1, 198.51.100.1, 10.9.9.9", "198.51.100.1"],
  ["a proxy that names nobody is the client", "10.1.2.3", undefined, "10.1.2.3"],
  ["text that is no address ends the search", "10.1.2.3", "198.51.100.1, unknown, 10.9.9.9", "10.9.9.9"],
  ["a port is left out", "10.1.2.3", "198.51.100.1:4711", "198.51.100.1"],
  ["a port behind IPv6 is left out", "fd00::1", "[2001:db8:1:2:3::4]:4711", "20010db800010002/64"],
  ["IPv4 that is mapped into IPv6 is IPv4", "::ffff:10.1.2.3", "::ffff:198.51.100.1", "198.51.100.1"],
  ["addresses of one IPv6 network are one client", "2001:db8:1:2:ffff::9", undefined, "20010db800010002/64"],
  ["a connection that has gone has no address", undefined, "198.51.100.1", "unknown"]
]

describe("the client's address", () => {
  for (const [promise, peer, forwardedFor, block] of cases) it(promise, () => assert.strictEqual(clientBlock(peer, forwardedFor, proxies), block))

  it("is the other end of the connection if no proxy is trusted", () => assert.strictEqual(clientBlock("10.1.2.3", "198.51.100.1", []), "10.1.2.3"))
})
