import { parentPort } from "node:worker_threads"
import { makeHashReader } from "./HashReader.ts"

/** What `HashThread` runs in a thread of its own. */
parentPort?.on(
  "message",
  makeHashReader((result) => parentPort?.postMessage(result))
)
