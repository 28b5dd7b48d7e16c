import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Effect } from "effect"
import { faultNamed } from "../../packages/reference-engine/test/mutants/index.ts"
import { serveEngine } from "../../packages/reference-engine/test/serveEngine.ts"

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
  /** Default: the longest that the files name. */
  readonly maxContext?: number
  /** Tokens in a block of the KV cache, if other than the default. */
  readonly blockSize?: number
}

/** Runs a reference engine with the given files and fault in this process until the scope closes. */
export const serveSample = ({ adapter, blockSize, cardBytes = usualCard, files = trainedFiles("tiny-chat"), maxContext, mutant }: Serving) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const directory = mkdtempSync(join(tmpdir(), "seatrial-mutant-"))
      for (const [name, bytes] of files) writeFileSync(join(directory, name), bytes)
      const adapted = join(directory, "adapter")
      if (adapter !== undefined) mkdirSync(adapted)
      for (const [name, bytes] of adapter ?? []) writeFileSync(join(adapted, name), bytes)
      const words = [
        `--model=${directory}`,
        "--served-model-name=m",
        `--gpu-memory-bytes=${cardBytes}`,
        "--enable-prompt-tokens-details",
        ...(blockSize === undefined ? [] : [`--block-size=${blockSize}`]),
        ...(maxContext === undefined ? [] : [`--max-model-len=${maxContext}`]),
        ...(adapter === undefined ? [] : ["--enable-lora", `--lora-modules=adapter=${adapted}`])
      ]
      const { close: closeEngine, url } = await serveEngine(words, mutant === undefined ? null : faultNamed(mutant))
      const served: Served = { url, version: `reference-0.1.0${mutant === undefined ? "" : `+mutant.${mutant}`}`, files }
      const close = async () => {
        await closeEngine()
        rmSync(directory, { recursive: true, force: true })
      }
      return { served, close }
    }),
    ({ close }) => Effect.promise(close)
  ).pipe(Effect.map(({ served }) => served))
