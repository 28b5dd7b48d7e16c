import { readFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { processesOf } from "../e2e/processesOf.ts"

// Runs as a separate process for a folder: when its standard input closes, it kills all processes that use the folder and removes it.
const [, , folder = ""] = process.argv

const read = (path: string) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // It has ended already.
    return ""
  }
}
const parentOf = (pid: number) => Number(/^PPid:\t(\d+)$/mu.exec(read(`/proc/${pid}/status`))?.[1])
const runner = process.ppid
/** Vitest's own workers are its business as long as it lives. */
const strays = () => processesOf(folder).filter((pid) => parentOf(pid) !== runner || process.ppid !== runner)

const sweep = async () => {
  // A killed process may have started another one just before.
  for (let left = strays(); left.length > 0; left = strays()) {
    for (const pid of left) {
      const name = read(`/proc/${pid}/cmdline`).split("\0").slice(0, 2).join(" ").trim()
      if (name === "") continue
      process.stderr.write(`left behind and killed: ${name}\n`)
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It has ended already.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 })
}

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => {})
process.stdin.resume()
process.stdin.once("close", () => void (folder === "" ? undefined : sweep()))
