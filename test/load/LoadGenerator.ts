import { spawn } from "node:child_process"
import { join } from "node:path"
import { Effect, Schema, type Scope } from "effect"
import { type LoadPlan, LoadResult } from "./generator/LoadPlan.ts"
import { BenchError, onCore } from "./Program.ts"

const decodeResult = Schema.decodeUnknownEffect(LoadResult)

/** Runs plans sequentially. Fails if a response was not 200, because such figures are meaningless. */
export type LoadGenerator = (plan: LoadPlan) => Effect.Effect<LoadResult, BenchError>

/** Starts the load generator until the scope closes. */
export const startLoadGenerator = Effect.fnUntraced(function* (core?: number): Effect.fn.Return<LoadGenerator, never, Scope.Scope> {
  const [command = process.execPath, ...rest] = [...(yield* onCore(core)), process.execPath, join(import.meta.dirname, "generator/main.ts")]
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(command, rest, { stdio: ["ignore", "inherit", "inherit", "ipc"] })),
    (running) => Effect.sync(() => running.kill("SIGKILL"))
  )
  return Effect.fnUntraced(function* (plan) {
    const nextMessage = Effect.callback<unknown, BenchError>((resume) => {
      const gone = () => resume(Effect.fail(new BenchError({ message: "The load generator ended." })))
      child.once("exit", gone)
      child.once("message", (message) => {
        child.off("exit", gone)
        resume(Effect.succeed(message))
      })
      child.send(plan)
    })
    const result = yield* nextMessage.pipe(
      Effect.timeoutOrElse({
        duration: `${plan.warmSeconds + plan.seconds + 30} seconds`,
        orElse: () => Effect.fail(new BenchError({ message: "The load generator does not end." }))
      }),
      Effect.flatMap((message) => Effect.orDie(decodeResult(message)))
    )
    if (result.failures > 0) return yield* new BenchError({ message: `${result.failures} of ${result.all} answers of port ${plan.port} were failures.` })
    return result
  })
})
