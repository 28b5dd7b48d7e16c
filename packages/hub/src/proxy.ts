import { connect as connectTcp, isIP, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { HubUnavailable } from "./failures.ts"

type Environment = Readonly<Record<string, string | undefined>>

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "").toLowerCase()
const portOf = ({ port, protocol }: URL): number => (port === "" ? (protocol === "https:" ? 443 : 80) : Number(port))

/** Whether an entry of NO_PROXY (`host`, `.domain`, `*.domain`, `host:port`, `*`) matches an address. */
const excepts = (entry: string, url: URL): boolean => {
  const [, name = entry, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(entry) ?? []
  if (port !== undefined && Number(port) !== portOf(url)) return false
  const host = hostOf(url)
  const plain = name.replace(/^\*?\./, "")
  return name === "*" || host === plain || host.endsWith(`.${plain}`)
}

/** The address of the proxy for a protocol, if one is set. */
const configuredProxy = (protocol: string, env: Environment): string | undefined => {
  const plain = env.http_proxy || env.HTTP_PROXY
  return protocol === "https:" ? env.https_proxy || env.HTTPS_PROXY || plain : plain
}

/** The proxy that Node's own client would use for an address: none unless `NODE_USE_ENV_PROXY` is 1. */
export const proxyFor = (url: URL, env: Environment = process.env): URL | null => {
  if (env.NODE_USE_ENV_PROXY !== "1") return null
  const configured = configuredProxy(url.protocol, env) ?? ""
  if (!URL.canParse(configured)) return null
  const except = (env.no_proxy || env.NO_PROXY || "").toLowerCase().split(/[\s,]+/)
  return except.some((entry) => entry !== "" && excepts(entry, url)) ? null : new URL(configured)
}

const maxHeadBytes = 16 * 1024

/** A connection to a proxy, and the same connection (or TLS within it) when it leads to the requested address. */
export interface Tunnel {
  readonly raw: Socket
  readonly opened: Promise<Socket>
}

/** Asks a proxy for a tunnel to an address (CONNECT). Rejects with `HubUnavailable` if the proxy refuses. */
export const openTunnel = (proxy: URL, url: URL): Tunnel => {
  const place = { host: hostOf(proxy), port: portOf(proxy) }
  const secure = proxy.protocol === "https:"
  const raw = secure ? connectTls({ ...place, ...(isIP(place.host) === 0 ? { servername: place.host } : {}) }) : connectTcp({ ...place, noDelay: true })
  const opened = new Promise<Socket>((resolve, reject) => {
    let head = Buffer.alloc(0)
    const fail = (message: string) => {
      reject(new HubUnavailable({ message }))
      raw.destroy()
    }
    const lost = () => fail("The proxy to the model hub cannot be reached.")
    raw.once("error", lost)
    raw.once("close", lost)
    raw.once(secure ? "secureConnect" : "connect", () => {
      const target = `${url.hostname}:${portOf(url)}`
      const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
      const login = user === ":" ? "" : `proxy-authorization: Basic ${Buffer.from(user).toString("base64")}\r\n`
      raw.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${login}\r\n`)
    })
    const read = (chunk: Buffer) => {
      head = Buffer.concat([head, chunk])
      const end = head.indexOf("\r\n\r\n")
      if (end === -1) return head.length > maxHeadBytes ? fail("The proxy to the model hub does not speak HTTP/1.1.") : undefined
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(head.toString("latin1", 0, end))?.[1]
      if (status === undefined || !status.startsWith("2"))
        return fail(`The proxy did not connect to the model hub: it responded with status ${status ?? "none"}.`)
      raw.off("data", read)
      raw.off("error", lost)
      raw.off("close", lost)
      raw.pause()
      const rest = head.subarray(end + 4)
      if (rest.length > 0) raw.unshift(rest)
      const host = hostOf(url)
      if (url.protocol !== "https:") return resolve(raw)
      const inner = connectTls({ socket: raw, ALPNProtocols: ["http/1.1"], ...(isIP(host) === 0 ? { servername: host } : {}) })
      inner.once("close", () => raw.destroy())
      raw.once("error", (error) => inner.destroy(error))
      resolve(inner)
    }
    raw.on("data", read)
  })
  return { raw, opened }
}
