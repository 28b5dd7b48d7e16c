import { createHash } from "node:crypto"
import { createServer } from "node:net"
import { Effect, type Scope } from "effect"
import { StartError } from "./StartError.ts"

const guard = (network: string): Effect.Effect<boolean, never, Scope.Scope> => {
  const server = createServer()
  return Effect.acquireRelease(
    Effect.callback<boolean>((resume) => {
      server.once("error", () => resume(Effect.succeed(false)))
      server.listen(40_404, `${network}.255.254`, () => resume(Effect.succeed(true)))
    }),
    () => Effect.sync(() => server.close())
  )
}

/**
 * The first two numbers of the pods' loopback addresses. Each running system reserves its network by listening on one
 * of its addresses. The path of the folder selects the network, so that a restart uses the same one if possible.
 */
export const podNetwork = Effect.fnUntraced(function* (folder: string) {
  const start = createHash("sha256").update(folder).digest()[0] ?? 0
  for (let offset = 0; offset < 250; offset++) {
    const network = `127.${2 + ((start + offset) % 250)}`
    if (yield* guard(network)) return network
  }
  return yield* new StartError({ message: "No loopback network is free for pods. This requires Linux, on which all of 127.0.0.0/8 is the loopback network." })
})
