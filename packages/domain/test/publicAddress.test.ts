import { BlockList } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { isPublicAddress, parseNetwork } from "../src/publicAddress.ts"

/** Each network with its first and last address, and the neighboring addresses if they are public, otherwise null. */
const edges: ReadonlyArray<readonly [first: string, last: string, before: string | null, after: string | null]> = [
  ["0.0.0.0", "0.255.255.255", null, "1.0.0.0"],
  ["10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"],
  ["100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"],
  ["127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"],
  ["169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"],
  ["172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"],
  ["192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"],
  ["192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"],
  ["198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"],
  ["224.0.0.0", "255.255.255.255", "223.255.255.255", null],
  ["::", "::1", null, null],
  ["fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe00::"],
  ["fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", null],
  ["fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", null, null],
  ["ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", null, null],
  ["64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", null, "64:ff9b:2::"]
]

const hex = (v4: string, turned = false) => {
  const [a = 0, b = 0, c = 0, d = 0] = v4.split(".").map((part) => Number(part) ^ (turned ? 255 : 0))
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}

/** The forms in which an IPv6 address embeds an IPv4 address. */
const carried: ReadonlyArray<(v4: string) => string> = [
  (v4) => `::ffff:${v4}`,
  (v4) => `0:0:0:0:0:FFFF:${hex(v4)}`,
  (v4) => `::${v4}`,
  (v4) => `64:ff9b::${v4}`,
  (v4) => `64:ff9b::${hex(v4)}`,
  (v4) => `2002:${hex(v4)}::1`,
  (v4) => `2001:0:${hex(v4)}:0:0:${hex("8.8.8.8", true)}`,
  (v4) => `2001::${hex("8.8.8.8")}:8000:1234:${hex(v4, true)}`
]

// Mostly in the allocated part of the IPv6 space.
const Groups = Schema.Tuple([
  Schema.Int.check(Schema.isBetween({ minimum: 0x2400, maximum: 0x2fff })),
  ...Array.from({ length: 7 }, () => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff })))
])

describe("an address", () => {
  it("is public up to the edges of every non-public network, also if embedded in an IPv6 address", () => {
    for (const [first, last, ...outside] of edges) {
      for (const address of [first, last]) assert.isFalse(isPublicAddress(address), address)
      for (const address of outside) if (address !== null) assert.isTrue(isPublicAddress(address), address)
      if (first.includes(":")) continue
      for (const form of carried) {
        for (const address of [first, last]) assert.isFalse(isPublicAddress(form(address)), form(address))
        for (const address of outside) if (address !== null) assert.isTrue(isPublicAddress(form(address)), form(address))
      }
    }
  })

  it("in the cluster's own networks is not public", () => {
    const inside = ["93.184.0.0/16", "2606:4700::/32"].map(parseNetwork).filter((network) => network !== null)
    for (const address of ["93.184.216.34", "::ffff:93.184.216.34", "2606:4700::1111"]) {
      assert.isTrue(isPublicAddress(address), address)
      assert.isFalse(isPublicAddress(address, inside), address)
    }
    assert.isTrue(isPublicAddress("93.185.0.0", inside))
  })

  it("in an unusual form is not public", () => {
    const odd = [
      "",
      "8.8.8",
      "8.8.8.8.8",
      "08.8.8.8",
      "0x8.8.8.8",
      "8.8.8.256",
      "134744072",
      "2606:4700:::1",
      "2606::4700::1",
      "1:2:3:4:5:6:7",
      "1:2:3:4:5:6:7::8"
    ]
    for (const address of [...odd, "2606:4700::1%eth0", "[2606:4700::1]", "8.8.8.8::", "2606:4700::12345", "example.com", " 8.8.8.8"]) {
      assert.isFalse(isPublicAddress(address), address)
    }
  })

  it.prop("is in a network exactly if Node says so", [Groups, Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 128 }))], ([groups, prefix]) => {
    const text = (of: ReadonlyArray<number>) => of.map((group) => group.toString(16)).join(":")
    const network = parseNetwork(`${text(groups)}/${prefix}`)
    if (network === null) throw new Error(text(groups))
    const list = new BlockList()
    list.addSubnet(text(groups), prefix, "ipv6")
    for (let bit = 0; bit < 128; bit++) {
      const near = text(groups.map((group, index) => (index === bit >> 4 ? group ^ (0x8000 >> (bit & 15)) : group)))
      if (isPublicAddress(near)) assert.strictEqual(isPublicAddress(near, [network]), !list.check(near, "ipv6"), `${near} in ${text(groups)}/${prefix}`)
    }
  })
})

describe("a network", () => {
  it("is an address and the length of its prefix", () => {
    assert.deepStrictEqual(parseNetwork("10.32.0.0/11"), { bytes: [10, 32, 0, 0], prefix: 11 })
    for (const text of ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "::/129", "cluster/8", "10.0.0.0/8/8"]) assert.isNull(parseNetwork(text), text)
  })
})
