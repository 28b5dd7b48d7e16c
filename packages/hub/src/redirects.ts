import { lookup as lookUp } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import { isPublicAddress } from "@seatrial/domain"
import { HubUnavailable } from "./failures.ts"

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "").toLowerCase()

const refused = () =>
  new HubUnavailable({ message: "The model hub redirects to an address inside a private network. To permit it, add the host to HUB_REDIRECT_HOSTS." })

/** Resolves a host from a redirect of the hub, and rejects private addresses. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookUp(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? []
    if (error !== null || first === undefined) return callback(error ?? refused(), "", 0)
    if (!addresses.every(({ address }) => isPublicAddress(address))) return callback(refused(), "", 0)
    if (options.all === true) return callback(null, addresses)
    callback(null, first.address, first.family)
  })
}

/** How to connect to the target of a redirect. */
export interface ConnectOptions {
  /** Resolves the host; absent if any address is allowed. */
  readonly lookup?: LookupFunction
}

/**
 * Whether the hub may redirect to an address: not from TLS to plain HTTP, and into a private network only on its own
 * host or to `redirectHosts` (`.name` for all subdomains). Throws `HubUnavailable`. The addresses of a host are checked
 * when it is connected to.
 */
export const permitRedirect = (hub: URL, next: URL, redirectHosts: ReadonlyArray<string>): ConnectOptions => {
  if (next.protocol !== "https:" && (next.protocol !== "http:" || hub.protocol === "https:"))
    throw new HubUnavailable({ message: "The model hub redirects to an unsafe address." })
  const host = hostOf(next)
  if (host === hostOf(hub) || redirectHosts.some((name) => name === host || (name.startsWith(".") && host.endsWith(name)))) return {}
  if (isIP(host) === 0) return { lookup: publicLookup }
  if (!isPublicAddress(host)) throw refused()
  return {}
}
