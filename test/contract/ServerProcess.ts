import { Effect, Redacted, type Scope } from "effect"
import { type ChildProgram, startProgram } from "../e2e/ChildProgram.ts"
import { eventually } from "../e2e/eventually.ts"
import { openWire, type Wire } from "./Wire.ts"

/** The server as a process of its own, and a wire to it. */
export interface ServerProcess extends Wire {
  readonly program: ChildProgram
}

/** Limits that no proof reaches unless it is about them. */
const settings = {
  // With no more rights than an installation gives it.
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
  // Nobody listens there: whoever asks the hub is refused at once.
  HF_ENDPOINT: "http://127.0.0.1:9"
}

const portIn = (said: string) => /Listening on [^"]*:(\d+)/.exec(said)?.[1]

/** Starts the program that is shipped on a free port of this machine and waits until it listens. */
export const startServer = Effect.fnUntraced(function* (
  url: Redacted.Redacted<string>,
  over: Readonly<Record<string, string>> = {}
): Effect.fn.Return<ServerProcess, never, Scope.Scope> {
  const program = yield* startProgram(["packages/server/src/main.ts"], { DATABASE_URL: Redacted.value(url), ...settings, ...over })
  const said = yield* eventually("the server listens", Effect.sync(program.said), (text) => portIn(text) !== undefined || program.hasExited())
  const port = portIn(said)
  if (port === undefined) return yield* Effect.die(new Error(`the server ended before it listened: ${said}`))
  return { program, ...(yield* openWire(Number(port))) }
})
