import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { freePort } from "../../process/freePort.ts"
import { startProgram } from "../Program.ts"

interface EngineOptions {
  readonly count: number
  /** Requests that each processes at a time. */
  readonly slots: number
  /** Milliseconds for each request. */
  readonly millis: number
  /** Tokens that the prefix cache of each holds. */
  readonly cacheTokens: number
}

/** Starts fake engines of a fixed speed, in one process. Returns their addresses. */
export const startEngines = Effect.fnUntraced(function* ({ cacheTokens, count, millis, slots }: EngineOptions) {
  const further = yield* Effect.forEach(Array.from({ length: count - 1 }), () => freePort)
  let first = 0
  yield* startProgram({
    name: `${count} engines`,
    file: join(import.meta.dirname, "engines/main.ts"),
    readyPath: "/health",
    environment: (port) => {
      first = port
      return { PORTS: [port, ...further].join(","), SLOTS: String(slots), MILLIS: String(millis), CACHE_TOKENS: String(cacheTokens) }
    },
    core: Math.min(1, availableParallelism() - 1)
  })
  return [first, ...further].map((port) => `http://127.0.0.1:${port}`)
})
