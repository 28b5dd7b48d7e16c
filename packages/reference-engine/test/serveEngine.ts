import { parseArguments } from "../src/Arguments.ts"
import { type Booted, boot } from "../src/Boot.ts"
import { makeServer } from "../src/HttpServer.ts"
import type { Fault } from "../src/Seams.ts"

/** An engine in this process. `lines`: its log so far. */
export interface ServedEngine {
  readonly url: string
  readonly booted: Booted
  readonly lines: ReadonlyArray<string>
  readonly close: () => Promise<void>
}

/** Boots an engine with these arguments in this process and serves it on a free port. Throws if it cannot start. */
export const serveEngine = async (words: ReadonlyArray<string>, fault: Fault | null = null): Promise<ServedEngine> => {
  const settings = parseArguments([...words, "--host=127.0.0.1", "--port=0"])
  if (typeof settings === "string") throw new Error(settings)
  const lines: Array<string> = []
  const booted = boot(settings, (_, text) => lines.push(text), fault)
  const server = makeServer(booted)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const close = () =>
    new Promise<void>((resolve) => {
      booted.engine.scheduler.close()
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { url: `http://127.0.0.1:${port}`, booted, lines, close }
}
