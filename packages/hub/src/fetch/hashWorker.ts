import { parentPort } from "node:worker_threads"
import { makeHashReader } from "./HashReader.ts"

/** The code of the thread of `HashThread`. */
parentPort?.on(
  "message",
  makeHashReader((result) => parentPort?.postMessage(result))
)
