import { readFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { processesOf } from "../e2e/processesOf.ts"

// Run as a process of its own with a folder: when its standard input closes, what still runs on the folder is killed, and the folder goes.
const [, , folder = ""] = process.argv

const read = (path: string) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // It ended meanwhile.
    return ""
  }
}
const parentOf = (pid: number) => Number(/^PPid:\t(\d+)$/mu.exec(read(`/proc/${pid}/status`))?.[1])
const runner = process.ppid
/** Vitest's own workers are its business as long as it lives. */
const strays = () => processesOf(folder).filter((pid) => parentOf(pid) !== runner || process.ppid !== runner)

const sweep = async () => {
  // What is killed may have started another just before.
  for (let left = strays(); left.length > 0; left = strays()) {
    for (const pid of left) {
      const name = read(`/proc/${pid}/cmdline`).split("\0").slice(0, 2).join(" ").trim()
      if (name === "") continue
      process.stderr.write(`left behind and killed: ${name}\n`)
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It ended meanwhile.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 })
}

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => {})
process.stdin.resume()
process.stdin.once("close", () => void (folder === "" ? undefined : sweep()))
