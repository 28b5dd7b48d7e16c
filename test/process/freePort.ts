import { createServer } from "node:net"
import { Effect } from "effect"

/** An unused port below the range from which the system assigns free ports, so that no other test gets it. */
export const freePort: Effect.Effect<number> = Effect.callback<number | null>((resume) => {
  const port = 20_000 + Math.floor(Math.random() * 10_000)
  const server = createServer()
  server.once("error", () => resume(Effect.succeed(null)))
  server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(port))))
}).pipe(Effect.flatMap((port) => (port === null ? Effect.suspend(() => freePort) : Effect.succeed(port))))
