import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Effect } from "effect"
import { parseArguments } from "../../packages/reference-engine/src/Arguments.ts"
import { boot } from "../../packages/reference-engine/src/Boot.ts"
import { makeServer } from "../../packages/reference-engine/src/HttpServer.ts"
import { faultNamed } from "../../packages/reference-engine/test/mutants/index.ts"

export type Files = ReadonlyMap<string, Uint8Array>

export interface Served {
  readonly url: string
  readonly version: string
  readonly files: Files
}

/** Bytes of the simulated GPU: room for two or three full sequences, so that requests can fill the cache. */
const usualCard = 10 * 2 ** 20

interface Serving {
  readonly files?: Files
  readonly mutant?: string
  /** Files of an adapter that it serves as `adapter`. */
  readonly adapter?: Files
  readonly cardBytes?: number
}

/** Runs a reference engine with the given files and fault in this process until the scope closes. */
export const serveSample = ({ adapter, cardBytes = usualCard, files = trainedFiles("tiny-chat"), mutant }: Serving) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const directory = mkdtempSync(join(tmpdir(), "seatrial-mutant-"))
      for (const [name, bytes] of files) writeFileSync(join(directory, name), bytes)
      const adapted = join(directory, "adapter")
      if (adapter !== undefined) mkdirSync(adapted)
      for (const [name, bytes] of adapter ?? []) writeFileSync(join(adapted, name), bytes)
      const settings = parseArguments([
        `--model=${directory}`,
        "--served-model-name=m",
        "--host=127.0.0.1",
        "--port=0",
        `--gpu-memory-bytes=${cardBytes}`,
        "--enable-prompt-tokens-details",
        ...(adapter === undefined ? [] : ["--enable-lora", `--lora-modules=adapter=${adapted}`])
      ])
      if (typeof settings === "string") throw new Error(settings)
      const booted = boot(settings, () => {}, mutant === undefined ? null : faultNamed(mutant))
      const server = makeServer(booted)
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address: AddressInfo | string | null = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const served: Served = { url: `http://127.0.0.1:${port}`, version: `reference-0.1.0${mutant === undefined ? "" : `+mutant.${mutant}`}`, files }
      const close = async () => {
        booted.engine.scheduler.close()
        server.closeAllConnections()
        await new Promise<void>((resolve) => server.close(() => resolve()))
        rmSync(directory, { recursive: true, force: true })
      }
      return { served, close }
    }),
    ({ close }) => Effect.promise(close)
  ).pipe(Effect.map(({ served }) => served))
