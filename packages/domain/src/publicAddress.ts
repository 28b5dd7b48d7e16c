/** Parses an IPv4 address in dotted decimal form into 4 bytes; null if the text is invalid. */
const parseV4 = (text: string): ReadonlyArray<number> | null => {
  const parts = text.split(".")
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part))) return null
  const bytes = parts.map(Number)
  return bytes.every((byte) => byte <= 255) ? bytes : null
}

/** The bytes of a sequence of IPv6 groups. The last group may be in IPv4 form. */
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
  // `::` represents at least two bytes, and IPv4 form is valid only at the end.
  if (before === null || after === null || (tail !== undefined && head.includes("."))) return null
  const missing = 16 - before.length - after.length
  if (tail === undefined ? missing !== 0 : missing < 2) return null
  return [...before, ...new Array<number>(missing).fill(0), ...after]
}

/** The 4 or 16 bytes of an IP address; null if the text is invalid or has a zone. */
export const parseAddress = (text: string): ReadonlyArray<number> | null => (text.includes(":") ? parseV6(text) : parseV4(text))

/** A block of addresses: all that begin with the first `prefix` bits of `bytes` (4 bytes for IPv4, 16 for IPv6). */
export interface Network {
  readonly bytes: ReadonlyArray<number>
  readonly prefix: number
}

/** Parses `address/prefix`; null if the text is invalid. */
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

/** Whether one of the networks contains the address. */
export const networksHold = (among: ReadonlyArray<Network>, address: ReadonlyArray<number>): boolean => among.some((network) => isWithin(address, network))

/**
 * Networks outside of the public internet: the local host, private networks, cluster networks, cloud metadata services,
 * multicast.
 */
const nonPublicNetworks = networks(
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
  // NAT64 with a local-use prefix.
  "64:ff9b:1::/48",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8"
)

/**
 * IPv6 forms that embed an IPv4 address, by the offset of its first byte. Teredo inverts every bit of the second of its
 * two addresses.
 */
const carriers = [
  { network: networks("::ffff:0:0/96"), at: 12, turned: false },
  { network: networks("::/96"), at: 12, turned: false },
  { network: networks("64:ff9b::/96"), at: 12, turned: false },
  { network: networks("2002::/16"), at: 2, turned: false },
  { network: networks("2001::/32"), at: 4, turned: false },
  { network: networks("2001::/32"), at: 12, turned: true }
]

const isPublic = (address: ReadonlyArray<number>, inside: ReadonlyArray<Network>): boolean =>
  ![...nonPublicNetworks, ...inside].some((network) => isWithin(address, network)) &&
  carriers.every(
    ({ at, network, turned }) =>
      !network.some((form) => isWithin(address, form)) ||
      isPublic(
        address.slice(at, at + 4).map((byte) => (turned ? byte ^ 255 : byte)),
        inside
      )
  )

/**
 * Whether an IP address is on the public internet and in none of the `inside` networks. An IPv4 address embedded in an
 * IPv6 address (mapped, compatible, NAT64, 6to4, Teredo) must meet the same condition. False for text that is not an
 * address in its usual form or has a zone.
 */
export const isPublicAddress = (text: string, inside: ReadonlyArray<Network> = []): boolean => {
  const address = parseAddress(text)
  return address !== null && isPublic(address, inside)
}
