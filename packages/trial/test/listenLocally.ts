import { Server as HttpServer } from "node:http"
import type { Server } from "node:net"
import { Effect } from "effect"

/** Runs a server on a free port of this machine until the scope closes, and then ends its connections. */
export const listenLocally = (server: Server) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly url: string }>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ port, url: `http://127.0.0.1:${port}` }))
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        if (server instanceof HttpServer) server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
