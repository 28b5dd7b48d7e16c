import { lookup as lookUp } from "node:dns"
import { BlockList, isIP, type LookupFunction } from "node:net"
import { HubUnavailable } from "./failures.ts"

/** Addresses that are no place on the internet: of this machine, of its networks, of the cluster, of a cloud's metadata service. */
const nowherePublic = new BlockList()
for (const [net, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3]
] as const)
  nowherePublic.addSubnet(net, prefix, "ipv4")
for (const [net, prefix] of [
  ["::", 127],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8]
] as const)
  nowherePublic.addSubnet(net, prefix, "ipv6")

/** Whether an address lies outside the internet, also where an IPv4 one is written as IPv6. */
export const isPrivateAddress = (address: string): boolean => nowherePublic.check(address, isIP(address) === 6 ? "ipv6" : "ipv4")

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "").toLowerCase()

const refused = () =>
  new HubUnavailable({ message: "The model hub redirects to an address inside a private network (HUB_REDIRECT_HOSTS names those that it may)." })

/** Finds the addresses of a host that the hub has named, and refuses it where one is private. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookUp(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? []
    if (error !== null || first === undefined) return callback(error ?? refused(), "", 0)
    if (addresses.some(({ address }) => isPrivateAddress(address))) return callback(refused(), "", 0)
    if (options.all === true) return callback(null, addresses)
    callback(null, first.address, first.family)
  })
}

/** How a place that the hub leads to may be connected to. */
export interface Passage {
  /** What finds its addresses, and is asked for nothing else; absent where it may be anywhere. */
  readonly lookup?: LookupFunction
}

/**
 * Whether the hub may lead to an address: nowhere without TLS from a place with it, and into a private network only on its own host or to those of `redirectHosts`
 * (`.name` for all below a name). Throws `HubUnavailable`. A name is judged by its addresses when it is connected to.
 */
export const passageTo = (hub: URL, next: URL, redirectHosts: ReadonlyArray<string>): Passage => {
  if (next.protocol !== "https:" && (next.protocol !== "http:" || hub.protocol === "https:"))
    throw new HubUnavailable({ message: "The model hub redirects to an unsafe address." })
  const host = hostOf(next)
  if (host === hostOf(hub) || redirectHosts.some((name) => name === host || (name.startsWith(".") && host.endsWith(name)))) return {}
  if (isIP(host) === 0) return { lookup: publicLookup }
  if (isPrivateAddress(host)) throw refused()
  return {}
}
