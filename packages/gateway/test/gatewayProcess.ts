import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { startProcess } from "../../../test/process/startProcess.ts"
import { Url } from "./serving.ts"

export interface GatewayProcess {
  readonly address: string
  readonly signal: (name: "SIGTERM" | "SIGKILL") => void
  /** The exit code, or the signal that ended the process. */
  readonly exited: Effect.Effect<number | NodeJS.Signals | null>
}

/** Runs the gateway program on a free port until the scope closes. */
export const startGateway = Effect.fnUntraced(function* (env: Readonly<Record<string, string>> = {}) {
  const program = yield* startProcess([process.execPath, join(import.meta.dirname, "../src/main.ts")], {
    env: {
      ...process.env,
      DATABASE_URL: Redacted.value(yield* Url),
      // The database role of a real installation.
      DATABASE_ROLE: "seatrial_gateway",
      GATEWAY_HOST: "127.0.0.1",
      GATEWAY_PORT: "0",
      GATEWAY_DRAIN_SECONDS: "0",
      ...env
    }
  })
  const [, address] = yield* program.logged(/gateway listens on ([^"\s]+)/)
  return { address: `http://${address}`, signal: program.kill, exited: program.exited } satisfies GatewayProcess
})
