import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { hostAddress } from "./places.ts"

/** Lets pods reach a program that listens on this machine's loopback address. Returns the address for pods. */
export const forwardHub = (address: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.gen(function* () {
    const port = Number(new URL(address).port)
    const sockets = new Set<Socket>()
    const server = createServer((client) => {
      const hub = connect(port, "127.0.0.1")
      for (const [from, to] of [
        [client, hub],
        [hub, client]
      ] as const) {
        sockets.add(from)
        from.once("close", () => {
          sockets.delete(from)
          to.destroy()
        })
        // The close that follows ends the other half.
        from.on("error", () => undefined)
        from.pipe(to)
      }
    })
    return yield* Effect.acquireRelease(
      Effect.callback<string>((resume) => {
        server.listen(0, hostAddress, () => {
          const listening = server.address()
          if (listening !== null && typeof listening === "object") resume(Effect.succeed(`http://${hostAddress}:${listening.port}`))
        })
      }),
      () =>
        Effect.sync(() => {
          server.close()
          for (const socket of sockets) socket.destroy()
        })
    )
  })
