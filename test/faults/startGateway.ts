import { Effect } from "effect"
import { type Caller, makeCaller } from "../e2e/Caller.ts"
import { startProgram } from "../e2e/ChildProgram.ts"

/** What a gateway needs of a system. */
export interface GatewayOf {
  readonly caller: Caller
  readonly databaseUrl: string
  readonly encryptionKey: string
  readonly apiKey: string
}

/** Starts another gateway of a system, as a process that does not wait for open requests when it stops. */
export const startGateway = Effect.fnUntraced(function* ({ apiKey, databaseUrl, encryptionKey }: GatewayOf, more: Readonly<Record<string, string>> = {}) {
  const program = yield* startProgram(["packages/gateway/src/main.ts"], {
    DATABASE_URL: databaseUrl,
    DATABASE_ROLE: "seatrial_gateway",
    SEATRIAL_ENCRYPTION_KEY: encryptionKey,
    GATEWAY_HOST: "127.0.0.1",
    GATEWAY_PORT: "0",
    GATEWAY_DRAIN_SECONDS: "0",
    ...more
  })
  const [, address] = yield* program.logged(/gateway listens on ([^"\s]+)/)
  return { program, address: `http://${address}`, caller: makeCaller(`http://${address}`, apiKey) }
})
