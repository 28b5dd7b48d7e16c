/** Reads an IPv4 address in its usual form, as its 4 bytes; null where the text is none. */
const parseV4 = (text: string): ReadonlyArray<number> | null => {
  const parts = text.split(".")
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part))) return null
  const bytes = parts.map(Number)
  return bytes.every((byte) => byte <= 255) ? bytes : null
}

/** The bytes of some groups of an IPv6 address, of which the last may be written as IPv4. */
const groupBytes = (text: string): ReadonlyArray<number> | null => {
  if (text === "") return []
  const bytes: Array<number> = []
  const groups = text.split(":")
  for (const [index, group] of groups.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 255)
      continue
    }
    const v4 = index === groups.length - 1 ? parseV4(group) : null
    if (v4 === null) return null
    bytes.push(...v4)
  }
  return bytes
}

const parseV6 = (text: string): ReadonlyArray<number> | null => {
  const [head = "", tail, ...more] = text.split("::")
  if (more.length > 0) return null
  const before = groupBytes(head)
  const after = groupBytes(tail ?? "")
  // What `::` stands for is two bytes at least; IPv4 ends an address.
  if (before === null || after === null || (tail !== undefined && head.includes("."))) return null
  const missing = 16 - before.length - after.length
  if (tail === undefined ? missing !== 0 : missing < 2) return null
  return [...before, ...new Array<number>(missing).fill(0), ...after]
}

/** The bytes of an IP address, 4 or 16; null where the text is none, or has a zone. */
export const parseAddress = (text: string): ReadonlyArray<number> | null => (text.includes(":") ? parseV6(text) : parseV4(text))

/** A block of addresses: those that begin with the first `prefix` bits of `bytes`, 4 of IPv4 or 16 of IPv6. */
export interface Network {
  readonly bytes: ReadonlyArray<number>
  readonly prefix: number
}

/** Reads `address/prefix`; null where the text is none. */
export const parseNetwork = (text: string): Network | null => {
  const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? []
  const bytes = parseAddress(address)
  return bytes === null || Number(bits) > bytes.length * 8 ? null : { bytes, prefix: Number(bits) }
}

const isWithin = (address: ReadonlyArray<number>, { bytes, prefix }: Network): boolean =>
  address.length === bytes.length &&
  bytes.every((byte, index) => {
    const bits = Math.min(8, Math.max(0, prefix - index * 8))
    return (byte ^ (address[index] ?? 0)) >> (8 - bits) === 0
  })

const networks = (...texts: ReadonlyArray<string>): ReadonlyArray<Network> => texts.map(parseNetwork).filter((network) => network !== null)

/** Whether one of the networks holds the address, given as its bytes. */
export const networksHold = (among: ReadonlyArray<Network>, address: ReadonlyArray<number>): boolean => among.some((network) => isWithin(address, network))

/** What is no place on the internet: this machine, its networks, the cluster's, a cloud's metadata service, groups. */
const nowherePublic = networks(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/3",
  "::/127",
  // Translation that a network defines for itself.
  "64:ff9b:1::/48",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8"
)

/** Forms of IPv6 that have an IPv4 address in them, by the byte where that starts; Teredo writes the second of its two with every bit turned. */
const carriers = [
  { network: networks("::ffff:0:0/96"), at: 12, turned: false },
  { network: networks("::/96"), at: 12, turned: false },
  { network: networks("64:ff9b::/96"), at: 12, turned: false },
  { network: networks("2002::/16"), at: 2, turned: false },
  { network: networks("2001::/32"), at: 4, turned: false },
  { network: networks("2001::/32"), at: 12, turned: true }
]

const isPublic = (address: ReadonlyArray<number>, inside: ReadonlyArray<Network>): boolean =>
  ![...nowherePublic, ...inside].some((network) => isWithin(address, network)) &&
  carriers.every(
    ({ at, network, turned }) =>
      !network.some((form) => isWithin(address, form)) ||
      isPublic(
        address.slice(at, at + 4).map((byte) => (turned ? byte ^ 255 : byte)),
        inside
      )
  )

/**
 * Whether an IP address lies in the internet and in none of `inside`; also the IPv4 address within an IPv6 one has to (mapped, compatible, NAT64, 6to4 and Teredo). What
 * is no address in its usual form, or has a zone, does not.
 */
export const isPublicAddress = (text: string, inside: ReadonlyArray<Network> = []): boolean => {
  const address = parseAddress(text)
  return address !== null && isPublic(address, inside)
}
