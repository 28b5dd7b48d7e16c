import { Resolver } from "node:dns"
import type { Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Context, Effect } from "effect"

/** Network access of downloads. */
export interface Internet {
  /** All addresses of a host, IPv4 first; empty if it has none or the look-up fails. */
  readonly resolve: (host: string) => Effect.Effect<ReadonlyArray<string>>
  /** Opens a TLS connection to one of these addresses on port 443. The certificate must match `host`. */
  readonly connect: (host: string, addresses: ReadonlyArray<string>) => Socket
}

// `lookup` is not used, because it adds the cluster's search domains, reads the hosts file, and blocks a thread of
// Node's small pool until a slow server answers.
const resolve: Internet["resolve"] = (host) =>
  Effect.callback((resume) => {
    const resolver = new Resolver({ timeout: 1_500, tries: 2 })
    const resolved: Array<ReadonlyArray<string>> = []
    let open = 2
    const take = (index: number) => (error: Error | null, addresses: ReadonlyArray<string> | undefined) => {
      resolved[index] = error === null ? (addresses ?? []) : []
      if (--open === 0) resume(Effect.succeed(resolved.flat()))
    }
    resolver.resolve4(host, take(0))
    resolver.resolve6(host, take(1))
    return Effect.sync(() => resolver.cancel())
  })

const connect: Internet["connect"] = (host, addresses) => {
  const all = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
  return connectTls({
    host,
    port: 443,
    servername: host,
    rejectUnauthorized: true,
    ALPNProtocols: ["http/1.1"],
    lookup: (_, options, callback) => {
      const [first] = all
      if (first === undefined) callback(new Error("no address"), "", 0)
      else if (options.all === true) callback(null, all)
      else callback(null, first.address, first.family)
    }
  })
}

/** The default connects to the internet. Tests provide another one. */
export const Internet = Context.Reference<Internet>("seatrial/Internet", { defaultValue: () => ({ resolve, connect }) })
