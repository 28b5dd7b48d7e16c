import { Effect, Redacted, type Scope } from "effect"
import { type ChildProgram, startProgram } from "../e2e/ChildProgram.ts"
import { eventually } from "../e2e/eventually.ts"
import { openWire, type Wire } from "./Wire.ts"

/** A server process and a connection pool to it. */
export interface ServerProcess extends Wire {
  readonly program: ChildProgram
}

/** Limits that only tests about rate limits reach. */
const settings = {
  // With the database role of an installation.
  DATABASE_ROLE: "seatrial_server",
  DATABASE_MIGRATE: "false",
  SERVER_PORT: "0",
  SEATRIAL_CURSOR_KEY: "0123456789abcdef0123456789abcdef",
  SEATRIAL_SIGNING_KEYS: Buffer.alloc(32, 9).toString("base64"),
  SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
  SERVER_READS_PER_KEY: "1000000",
  SERVER_READS_PER_KEY_BURST: "1000000",
  SERVER_READS_PER_ORG: "1000000",
  SERVER_READS_PER_ORG_BURST: "1000000",
  SERVER_PREVIEWS_PER_ORG: "1000000",
  SERVER_WRITES_PER_ORG: "1000000",
  // Nothing listens on this port, so every call of the hub fails immediately.
  HF_ENDPOINT: "http://127.0.0.1:9"
}

const portIn = (said: string) => /Listening on [^"]*:(\d+)/.exec(said)?.[1]

/** Starts the server program on a free port and waits until it listens. */
export const startServer = Effect.fnUntraced(function* (
  url: Redacted.Redacted<string>,
  over: Readonly<Record<string, string>> = {}
): Effect.fn.Return<ServerProcess, never, Scope.Scope> {
  const program = yield* startProgram(["packages/server/src/main.ts"], { DATABASE_URL: Redacted.value(url), ...settings, ...over })
  const output = yield* eventually("the server listens", Effect.sync(program.output), (text) => portIn(text) !== undefined || program.hasExited())
  const port = portIn(output)
  if (port === undefined) return yield* Effect.die(new Error(`the server ended before it listened: ${output}`))
  return { program, ...(yield* openWire(Number(port))) }
})
