import { type ChildProcessByStdio, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Readable } from "node:stream"
import { writeTrained } from "@seatrial/reference-engine/sample"
import { Effect } from "effect"

const program = join(import.meta.dirname, "../../../packages/reference-engine/src/main.ts")

/** The reference engine's program with the trained sample, under a name; its address. */
export const startReferenceEngine = Effect.fnUntraced(function* (name: string) {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-gateway-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  writeTrained(directory, "tiny-chat")
  const words = [`--model=${directory}`, `--served-model-name=${name}`, "--host=127.0.0.1", "--port=0", `--gpu-memory-bytes=${2 ** 26}`]
  const engine = yield* Effect.acquireRelease(
    Effect.sync(
      (): ChildProcessByStdio<null, Readable, null> =>
        spawn(process.execPath, [program, ...words, "--enable-prompt-tokens-details"], { stdio: ["ignore", "pipe", "inherit"] })
    ),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
  return yield* Effect.callback<string>((resume) => {
    let text = ""
    engine.stdout.on("data", (bytes: Buffer) => {
      text += bytes.toString("utf8")
      const url = /(http:\/\/127\.0\.0\.1:\d+)\n[\s\S]*Application startup complete\.\n/.exec(text)?.[1]
      if (url !== undefined) resume(Effect.succeed(url))
    })
    engine.once("exit", () => resume(Effect.die(new Error(`the engine ended before it listened: ${text}`))))
  })
})
