import { parentPort } from "node:worker_threads"
import type { CopyMessage, CopyRequest } from "./CopyThreads.ts"
import { copyFile } from "./copyFile.ts"

/** Bytes between two progress messages. */
const step = 16 * 1024 * 1024

/** The code of the threads of `CopyThreads`. */
parentPort?.on("message", ({ id, task }: CopyRequest) => {
  const tell = (message: CopyMessage) => parentPort?.postMessage(message)
  let untold = 0
  try {
    const digest = copyFile(task, (bytes) => {
      untold += bytes
      if (untold < step) return
      tell({ kind: "bytes", bytes: untold })
      untold = 0
    })
    tell({ kind: "bytes", bytes: untold })
    tell({ kind: "done", id, digest })
  } catch (error) {
    tell({ kind: "failed", id, code: error instanceof Error && "code" in error ? String(error.code) : "", message: String(error) })
  }
})
