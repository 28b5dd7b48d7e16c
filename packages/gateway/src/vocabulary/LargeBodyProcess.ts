import { type ChildProcessByStdio, spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { encodeFrame, type MessageFrame, makeFrameReader } from "./frames.ts"

/** How a process ended: `memory` if V8 had no more of it. */
export type ProcessEnd = "memory" | "other"

export interface LargeBodyProcessOptions {
  readonly program: URL
  /** Megabytes of V8's heap. */
  readonly heapMegabytes: number
  /** Called when it has started, before its first answer. */
  readonly onReady: () => void
  readonly onAnswer: (answer: { readonly head: string; readonly body: Buffer }) => void
  readonly onEnd: (end: ProcessEnd) => void
}

/** The folder of all packages, and that of what they depend on: the programs are started from their sources. */
const readable = ["../../../../packages", "../../../../node_modules", "../../../../package.json"].map((path) => fileURLToPath(new URL(path, import.meta.url)))

/**
 * A process that parses large bodies. A process and not a thread: if V8 runs out of memory, it ends the process, with all its threads. Bodies go through pipes as they are, behind
 * their lengths.
 */
export class LargeBodyProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  #isReady = false

  constructor({ heapMegabytes, onAnswer, onEnd, onReady, program }: LargeBodyProcessOptions) {
    const flags = [`--max-old-space-size=${heapMegabytes}`, "--permission", ...readable.map((path) => `--allow-fs-read=${path}`)]
    this.#child = spawn(process.execPath, [...flags, fileURLToPath(program)], { env: {}, stdio: ["pipe", "pipe", "ignore"] })
    // First: without free descriptors the process has no pipes, and says so by an error.
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
    // Its end is heard of below.
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
