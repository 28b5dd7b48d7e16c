import { type ChildProcessByStdio, spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { encodeFrame, type MessageFrame, makeFrameReader } from "./frames.ts"

/** How a process ended. `memory`: V8 ran out of memory. */
export type ProcessEnd = "memory" | "other"

export interface LargeBodyProcessOptions {
  readonly program: URL
  /** Size of the V8 heap in megabytes. */
  readonly heapMegabytes: number
  /** Called when the process has started, before its first answer. */
  readonly onReady: () => void
  readonly onAnswer: (answer: { readonly head: string; readonly body: Buffer }) => void
  readonly onEnd: (end: ProcessEnd) => void
}

/** The folders that the process may read: all packages and their dependencies, because the program runs from source. */
const readable = ["../../../../packages", "../../../../node_modules", "../../../../package.json"].map((path) => fileURLToPath(new URL(path, import.meta.url)))

/**
 * A process that parses large bodies. It is not a worker thread, because V8 ends the whole process if one thread runs
 * out of memory. Bodies are sent through pipes as length-prefixed bytes.
 */
export class LargeBodyProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  #isReady = false

  constructor({ heapMegabytes, onAnswer, onEnd, onReady, program }: LargeBodyProcessOptions) {
    const flags = [`--max-old-space-size=${heapMegabytes}`, "--permission", ...readable.map((path) => `--allow-fs-read=${path}`)]
    this.#child = spawn(process.execPath, [...flags, fileURLToPath(program)], { env: {}, stdio: ["pipe", "pipe", "ignore"] })
    // Registered first: without free file descriptors `spawn` emits an error and the process has no pipes.
    let hasEnded = false
    const end = (how: ProcessEnd) => {
      if (hasEnded) return
      hasEnded = true
      onEnd(how)
    }
    this.#child.once("error", () => end("other"))
    this.#child.once("exit", (_, signal) => end(signal === "SIGABRT" ? "memory" : "other"))
    const onFrame = (frame: Parameters<typeof onAnswer>[0]) => {
      if (this.#isReady) return onAnswer(frame)
      this.#isReady = true
      onReady()
    }
    this.#child.stdout.on("data", makeFrameReader(onFrame))
    // The exit of the process is handled above.
    this.#child.stdin.on("error", () => {})
  }

  get isReady(): boolean {
    return this.#isReady
  }

  ask(question: MessageFrame): void {
    for (const part of encodeFrame(question)) this.#child.stdin.write(part)
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }
}
