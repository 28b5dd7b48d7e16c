import { lookup as lookUp } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import { isPublicAddress } from "@seatrial/domain"
import { HubUnavailable } from "./failures.ts"

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "").toLowerCase()

const refused = () =>
  new HubUnavailable({ message: "The model hub redirects to an address inside a private network (HUB_REDIRECT_HOSTS names those that it may)." })

/** Finds the addresses of a host that the hub has named, and refuses it where one is private. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookUp(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? []
    if (error !== null || first === undefined) return callback(error ?? refused(), "", 0)
    if (!addresses.every(({ address }) => isPublicAddress(address))) return callback(refused(), "", 0)
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
  if (!isPublicAddress(host)) throw refused()
  return {}
}
