import { connect as connectTcp, isIP, type LookupFunction, type OnReadOpts, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"

interface Destination {
  readonly url: URL
  /** Resolves the host, if not every address is allowed. */
  readonly lookup?: LookupFunction
}

/** A connection to a host, with TLS if the address requires it, that reads directly into the given buffers. */
export const openSocket = ({ lookup, url }: Destination, onread: OnReadOpts): Socket => {
  const secure = url.protocol === "https:"
  const host = url.hostname.replace(/^\[|\]$/g, "")
  const options = { host, ...(lookup === undefined ? {} : { lookup }), port: url.port === "" ? (secure ? 443 : 80) : Number(url.port), onread }
  return secure
    ? connectTls({ ...options, ALPNProtocols: ["http/1.1"], ...(isIP(host) === 0 ? { servername: host } : {}) })
    : connectTcp({ ...options, noDelay: true })
}
