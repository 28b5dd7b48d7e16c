import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** A line to Postgres, or to an API server, that can be cut. */
export interface DatabaseLine {
  readonly url: string
  /** Closes all connections and refuses new ones until `mend`. */
  readonly cut: () => void
  readonly mend: () => void
}

/** Listens on loopback and forwards to the address of `url` until the scope closes. `heard` gets the forwarded bytes. */
export const openDatabaseLine = (url: string, heard: (text: string) => void = () => undefined): Effect.Effect<DatabaseLine, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<DatabaseLine & { readonly close: () => void }>((resume) => {
      const target = new URL(url)
      const open = new Set<Socket>()
      let away = false
      const server = createServer((near) => {
        if (away) return near.destroy()
        const far = connect(Number(target.port), target.hostname)
        near.on("data", (chunk: Buffer) => heard(chunk.toString("latin1")))
        for (const [socket, other] of [
          [near, far],
          [far, near]
        ] as const) {
          open.add(socket)
          socket.on("error", () => other.destroy())
          socket.on("close", () => {
            open.delete(socket)
            other.destroy()
          })
          socket.pipe(other)
        }
        return near
      })
      const cut = () => {
        away = true
        for (const socket of open) socket.destroy()
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const line = new URL(url)
        line.hostname = "127.0.0.1"
        line.port = String(typeof address === "object" ? (address?.port ?? 0) : 0)
        const close = () => {
          cut()
          server.close()
        }
        const mend = () => {
          away = false
        }
        resume(Effect.succeed({ url: line.href, cut, mend, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )
