import { type Network, networksHold, parseAddress } from "./publicAddress.ts"

/** Removes the port that some proxies add to addresses in `X-Forwarded-For`. */
const withoutPort = (text: string): string => /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text

const mapped = (bytes: ReadonlyArray<number>): boolean =>
  bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255

/** The bytes of an address; an IPv4-mapped IPv6 address yields 4 bytes. Null if the text is not an address. */
const bytesOf = (text: string): ReadonlyArray<number> | null => {
  const bytes = parseAddress(withoutPort(text))
  return bytes !== null && mapped(bytes) ? bytes.slice(12) : bytes
}

/** An IPv6 host can choose the last 64 bits of its address freely, so they all count as one client. */
const blockOf = (bytes: ReadonlyArray<number>): string =>
  bytes.length === 4
    ? bytes.join(".")
    : `${bytes
        .slice(0, 8)
        .map((byte) => byte.toString(16).padStart(2, "0"))
        .join("")}/64`

/**
 * The block of addresses that a request came from: an IPv4 address, or the /64 of an IPv6 address. `peer` is the remote
 * end of the connection. If it is one of the trusted `proxies`, the last address in `forwardedFor` (the
 * `X-Forwarded-For` header) that is not a trusted proxy counts. Earlier addresses are the caller's own claim.
 */
export const clientBlock = (peer: string | undefined, forwardedFor: string | undefined, proxies: ReadonlyArray<Network>): string => {
  let client = bytesOf(peer ?? "")
  if (client === null) return "unknown"
  const hops = proxies.length === 0 || forwardedFor === undefined ? [] : forwardedFor.split(",")
  while (networksHold(proxies, client)) {
    const before = bytesOf((hops.pop() ?? "").trim())
    if (before === null) break
    client = before
  }
  return blockOf(client)
}
