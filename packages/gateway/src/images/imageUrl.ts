import { isIP } from "node:net"

/** The longest address of an image, in characters. */
const maxLength = 8_192

/**
 * The address of an image that the gateway may ask for: https on its own port, of a host by its name, without user and password; null for any other. What is behind the
 * name is judged when it is resolved.
 */
export const imageUrl = (text: string, base?: URL): URL | null => {
  if (text.length > maxLength || !URL.canParse(text, base?.href)) return null
  const url = new URL(text, base?.href)
  const { hostname } = url
  if (url.protocol !== "https:" || url.port !== "" || url.username !== "" || url.password !== "") return null
  return hostname === "" || hostname.startsWith("[") || isIP(hostname) !== 0 ? null : url
}
