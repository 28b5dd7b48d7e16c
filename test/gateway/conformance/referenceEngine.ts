import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { writeTrained } from "@seatrial/reference-engine/sample"
import { Effect } from "effect"
import { startProcess } from "../../process/startProcess.ts"

const program = join(import.meta.dirname, "../../../packages/reference-engine/src/main.ts")

/** The reference engine's program with the trained sample, under a name; its address. */
export const startReferenceEngine = Effect.fnUntraced(function* (name: string) {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-gateway-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  writeTrained(directory, "tiny-chat")
  const words = [`--model=${directory}`, `--served-model-name=${name}`, "--host=127.0.0.1", "--port=0", `--gpu-memory-bytes=${2 ** 26}`]
  const engine = yield* startProcess([process.execPath, program, ...words, "--enable-prompt-tokens-details"], { env: process.env })
  const [, url = ""] = yield* engine.logged(/(http:\/\/127\.0\.0\.1:\d+)\n[\s\S]*Application startup complete\.\n/)
  return url
})
