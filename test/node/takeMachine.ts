import { createServer } from "node:net"
import { Effect, type Scope } from "effect"
import { missingRequirements } from "./requirements.ts"
import { sweep } from "./sweep.ts"

/** A socket without a file: the kernel frees it when its process ends, however it ends. */
const lock = "\0seatrial-node-suite"

/** Reserves the machine until the scope closes; `name` is that of the lock. */
export const takeLock = (name: string): Effect.Effect<void, never, Scope.Scope> => {
  const acquire = Effect.callback<() => void>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.die(new Error("Another run of npm run test:node uses this machine's network. Wait until it has ended."))))
    server.listen(name, () => resume(Effect.succeed(() => void server.close())))
  })
  return Effect.asVoid(Effect.acquireRelease(acquire, (release) => Effect.sync(release)))
}

/** Reserves the machine's one set of nodes: reports what is missing, refuses a second run, and removes what an earlier run left. It removes everything again at the end. */
export const takeMachine: Effect.Effect<void, never, Scope.Scope> = Effect.gen(function* () {
  const missing = missingRequirements()
  if (missing.length > 0) return yield* Effect.die(new Error(["npm run test:node cannot start:", ...missing].join("\n- ")))
  yield* takeLock(lock)
  yield* Effect.acquireRelease(Effect.promise(sweep), () => Effect.promise(sweep))
})
