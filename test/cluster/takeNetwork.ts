import { createServer } from "node:net"
import { Effect, type Scope } from "effect"

/** Of `npm start`, which holds the network of its pods by listening there. */
const mark = { port: 40_404, host: ".255.254" } as const
const [first, count] = [130, 110] as const

const listen = (host: string) =>
  Effect.callback<{ readonly close: Effect.Effect<void> } | undefined>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(undefined)))
    server.listen(mark.port, host, () => resume(Effect.succeed({ close: Effect.callback<void>((closed) => void server.close(() => closed(Effect.void))) })))
  })

/**
 * The first two numbers of loopback addresses that are a scope's own, such as `127.130`: no other test of this machine has them meanwhile, so that ports on them can be
 * fixed ones. `127.130.0.1` is the machine itself, pods have the others.
 */
export const takeNetwork: Effect.Effect<string, never, Scope.Scope> = Effect.gen(function* () {
  for (let tried = 0; tried < count; tried++) {
    const network = `127.${first + ((process.pid + tried) % count)}`
    const taken = yield* Effect.acquireRelease(listen(`${network}${mark.host}`), (held) => held?.close ?? Effect.void)
    if (taken !== undefined) return network
  }
  return yield* Effect.die(new Error(`none of the networks from 127.${first} is free`))
})
