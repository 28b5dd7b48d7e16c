import { join } from "node:path"
import { Effect } from "effect"
import { type RunningProcess, startProcess } from "../process/startProcess.ts"

/** The server of this version. */
export const ourServer = join(import.meta.dirname, "../../packages/server/src/main.ts")

/** Runs a server until the scope closes. */
export const startServer = (program: string, env: Readonly<Record<string, string>>) =>
  startProcess([process.execPath, program], {
    env: {
      ...process.env,
      SERVER_PORT: "0",
      SEATRIAL_CURSOR_KEY: "0123456789abcdef",
      SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
      SERVER_REQUIRE_FIRST_PURCHASE: "false",
      ...env
    }
  })

export const portOf = ({ logged }: RunningProcess) => Effect.map(logged(/Listening on [^"]*:(\d+)/), (match) => Number(match[1]))

export const get = (port: number, path: string, secret = "") =>
  Effect.promise(async () => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: secret === "" ? {} : { authorization: `Bearer ${secret}` } })
    return { status: response.status, text: await response.text() }
  })

export const isReady = (port: number) => Effect.map(get(port, "/readyz"), ({ status }) => status === 200)
