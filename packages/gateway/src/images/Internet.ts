import { Resolver } from "node:dns"
import type { Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Context, Effect } from "effect"

/** What a download knows of the world outside. */
export interface Internet {
  /** All addresses of a host, IPv4 first; none where it has none, or nobody tells. */
  readonly resolve: (host: string) => Effect.Effect<ReadonlyArray<string>>
  /** A connection by TLS to one of these addresses and to no other, on port 443, which proves to be `host`. */
  readonly connect: (host: string, addresses: ReadonlyArray<string>) => Socket
}

// Not `lookup`: that adds the cluster's search domains, reads the machine's own table of hosts, and holds one of Node's few threads until a slow server answers.
const resolve: Internet["resolve"] = (host) =>
  Effect.callback((resume) => {
    const resolver = new Resolver({ timeout: 1_500, tries: 2 })
    const found: Array<ReadonlyArray<string>> = []
    let open = 2
    const take = (place: number) => (error: Error | null, addresses: ReadonlyArray<string> | undefined) => {
      found[place] = error === null ? (addresses ?? []) : []
      if (--open === 0) resume(Effect.succeed(found.flat()))
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

/** The real one, unless another is provided. */
export const Internet = Context.Reference<Internet>("seatrial/Internet", { defaultValue: () => ({ resolve, connect }) })
