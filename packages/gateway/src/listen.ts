import { createServer, type RequestListener } from "node:http"
import { Data, Effect, type Scope } from "effect"

/** The address cannot be listened on. */
export class ListenError extends Data.TaggedError("ListenError")<{ readonly message: string; readonly taken: boolean }> {}

export interface ListenOptions {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Milliseconds that requests under way have to end when the scope closes. */
  readonly grace: number
}

/** Serves until the scope closes: then no new connection is taken, what is under way may end, and the rest is cut. Gives the port. */
export const listen = (handler: RequestListener, { grace, host, port }: ListenOptions): Effect.Effect<number, ListenError, Scope.Scope> => {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 60_000, keepAliveTimeout: 65_000, maxHeaderSize: 16_384, noDelay: true }, handler)
  const open = Effect.callback<number, ListenError>((resume) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      resume(new ListenError({ message: `${host}:${port} cannot be listened on (${cause.code}).`, taken: cause.code === "EADDRINUSE" }))
    )
    server.listen(port, host, () => {
      const address = server.address()
      resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : port))
    })
  })
  const close = Effect.callback<void>((resume) => {
    const cut = setTimeout(() => server.closeAllConnections(), grace)
    server.close(() => {
      clearTimeout(cut)
      resume(Effect.void)
    })
    server.closeIdleConnections()
  })
  return Effect.acquireRelease(open, () => close)
}
