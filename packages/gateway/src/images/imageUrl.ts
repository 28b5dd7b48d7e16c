import { isIP } from "node:net"

/** Longest image URL, in characters. */
const maxLength = 8_192

/**
 * Parses an image URL that the gateway may download: https on the default port, with a host name and without
 * credentials. Null for any other. Addresses are checked when the name is resolved.
 */
export const imageUrl = (text: string, base?: URL): URL | null => {
  if (text.length > maxLength || !URL.canParse(text, base?.href)) return null
  const url = new URL(text, base?.href)
  const { hostname } = url
  if (url.protocol !== "https:" || url.port !== "" || url.username !== "" || url.password !== "") return null
  return hostname === "" || hostname.startsWith("[") || isIP(hostname) !== 0 ? null : url
}
