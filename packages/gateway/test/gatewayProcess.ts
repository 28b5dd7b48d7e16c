import { type ChildProcessByStdio, spawn } from "node:child_process"
import type { Readable } from "node:stream"
import { Effect, Option, Redacted, Schema } from "effect"
import { Url } from "./serving.ts"

const Line = Schema.fromJsonString(Schema.Struct({ message: Schema.String }))
const decodeLine = Schema.decodeUnknownOption(Line)

export interface GatewayProcess {
  readonly address: string
  readonly signal: (name: "SIGTERM" | "SIGKILL") => void
  /** The exit code; null if a signal ended the process. */
  readonly exited: Effect.Effect<number | null>
}

/** Runs the gateway program on a free port until the scope closes. */
export const startGateway = Effect.fnUntraced(function* (env: Readonly<Record<string, string>> = {}) {
  const url = yield* Url
  const program = yield* Effect.acquireRelease(
    Effect.sync(
      (): ChildProcessByStdio<null, Readable, null> =>
        spawn(process.execPath, [new URL("../src/main.ts", import.meta.url).pathname], {
          env: {
            ...process.env,
            DATABASE_URL: Redacted.value(url),
            // The database role of a real installation.
            DATABASE_ROLE: "seatrial_gateway",
            GATEWAY_HOST: "127.0.0.1",
            GATEWAY_PORT: "0",
            GATEWAY_DRAIN_SECONDS: "0",
            ...env
          },
          stdio: ["ignore", "pipe", "inherit"]
        })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  let code: number | null | undefined
  program.once("exit", (status) => {
    code = status
  })
  const exited = Effect.callback<number | null>((resume) => {
    if (code !== undefined) return resume(Effect.succeed(code))
    program.once("exit", (status) => resume(Effect.succeed(status)))
  })
  const address = yield* Effect.callback<string>((resume) => {
    let text = ""
    program.stdout.on("data", (bytes: Buffer) => {
      text += bytes.toString("utf8")
      for (const line of text.split("\n")) {
        const address = Option.getOrNull(Option.map(decodeLine(line), ({ message }) => /^gateway listens on (\S+)$/.exec(message)?.[1]))
        if (typeof address === "string") resume(Effect.succeed(`http://${address}`))
      }
    })
    program.once("exit", () => resume(Effect.die(new Error(`the gateway ended before it listened: ${text}`))))
  })
  return { address, signal: (name) => void program.kill(name), exited } satisfies GatewayProcess
})
