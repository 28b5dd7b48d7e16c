import { parentPort } from "node:worker_threads"
import type { CopyMessage, CopyRequest } from "./CopyThreads.ts"
import { copyFile } from "./copyFile.ts"

/** Bytes between two progress messages. */
const step = 16 * 1024 * 1024

/** The code of the threads of `CopyThreads`. */
parentPort?.on("message", ({ id, task }: CopyRequest) => {
  const send = (message: CopyMessage) => parentPort?.postMessage(message)
  let unreported = 0
  try {
    const digest = copyFile(task, (bytes) => {
      unreported += bytes
      if (unreported < step) return
      send({ kind: "bytes", bytes: unreported })
      unreported = 0
    })
    send({ kind: "bytes", bytes: unreported })
    send({ kind: "done", id, digest })
  } catch (error) {
    send({ kind: "failed", id, code: error instanceof Error && "code" in error ? String(error.code) : "", message: String(error) })
  }
})
