import { readFileSync } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import { createServer } from "node:https"
import { connect as connectTls, type TLSSocket } from "node:tls"
import { Effect, type Scope } from "effect"
import type { Internet } from "../../../packages/gateway/src/images/Internet.ts"

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url))

/** A request that reached the host of images. */
export interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The name by which TLS was asked for. */
  readonly servername: string | undefined
  readonly isClosed: () => boolean
}

/** A real server with TLS that plays every host of an internet whose names the test defines. */
export interface ImageHost {
  readonly internet: Internet
  /** What a name resolves to, each time it is asked for: those beneath `images.test` have a certificate. */
  readonly names: Map<string, () => ReadonlyArray<string>>
  /** What each path answers. */
  readonly paths: Map<string, (asked: Asked) => void>
  readonly resolved: Array<string>
  readonly dialled: Array<{ readonly host: string; readonly addresses: ReadonlyArray<string> }>
  readonly asked: Array<Asked>
  /** Where connections go instead of to the server itself. */
  port: number
}

/** An address of the internet, to which no test connects. */
export const publicAddress = "93.184.216.34"

export const makeImageHost: Effect.Effect<ImageHost, never, Scope.Scope> = Effect.acquireRelease(
  Effect.callback<ImageHost & { readonly close: () => void }>((resume) => {
    const names = new WeakMap<object, string>()
    const server = createServer({ key: fixture("server.key"), cert: fixture("server.crt") }, (request, response) => {
      let closed = false
      response.on("close", () => {
        closed = true
      })
      const asked = { request, response, servername: names.get(request.socket), isClosed: () => closed }
      host.asked.push(asked)
      const answer = host.paths.get(request.url ?? "")
      if (answer === undefined) response.writeHead(404).end()
      else answer(asked)
    })
    const host: ImageHost & { readonly close: () => void } = {
      internet: {
        resolve: (name) =>
          Effect.sync(() => {
            host.resolved.push(name)
            return host.names.get(name)?.() ?? []
          }),
        connect: (name, addresses): TLSSocket => {
          host.dialled.push({ host: name, addresses })
          return connectTls({ host: "127.0.0.1", port: host.port, servername: name, ca: fixture("ca.crt") })
        }
      },
      names: new Map([["images.test", () => [publicAddress]]]),
      paths: new Map(),
      resolved: [],
      dialled: [],
      asked: [],
      port: 0,
      close: () => {
        server.close()
        server.closeAllConnections()
      }
    }
    server.on("secureConnection", (socket) => names.set(socket, String(socket.servername)))
    server.on("tlsClientError", () => {})
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      host.port = address !== null && typeof address === "object" ? address.port : 0
      resume(Effect.succeed(host))
    })
  }),
  ({ close }) => Effect.sync(close)
)
