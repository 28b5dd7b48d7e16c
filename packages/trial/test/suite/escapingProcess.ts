import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { confineProcess } from "../../src/suite/confineProcess.ts"
import type { Numbered, PinnedAnswer, PinnedQuestion } from "../../src/suite/pinnedQuestions.ts"

// What a tokenizer or template could try if it ran its own code, with the modules for files and processes already
// loaded.
const require = createRequire(import.meta.url)
const { dlopen } = process
confineProcess()

const attempts: Readonly<Record<string, () => unknown>> = {
  "own environment": () => readFileSync("/proc/self/environ", "utf8"),
  "environment of the operator": () => readFileSync(`/proc/${process.ppid}/environ`, "utf8"),
  "memory of the operator": () => readFileSync(`/proc/${process.ppid}/maps`, "utf8"),
  "a file of the node": () => readFileSync("/etc/passwd", "utf8"),
  "a file of its own": () => writeFileSync(join(tmpdir(), "seatrial-escaped"), ""),
  "a shell": () => {
    const { error } = spawnSync("/bin/sh", ["-c", "id"])
    if (error !== undefined) throw error
  },
  "a thread": () => new Worker("0", { eval: true }),
  // Node refuses addons by this code before it looks for the file.
  "an addon": () => {
    try {
      dlopen({ exports: {} }, join(tmpdir(), "absent.node"))
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ERR_DLOPEN_DISABLED")) return
      throw error
    }
  },
  "a module": () => require("node:net"),
  "a module that is built in": () => process.getBuiltinModule("node:net"),
  "code of a text": () => new Function("return 1")(),
  "the global fetch": () => fetch("http://127.0.0.1:9"),
  "a web socket": () => new WebSocket("ws://127.0.0.1:9")
}

const escapes = async (): Promise<ReadonlyArray<string>> => {
  const escaped: Array<string> = []
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      await attempt()
      escaped.push(name)
    } catch {}
  }
  await import("node:net").then(
    () => escaped.push("an import"),
    () => {}
  )
  return [...escaped, ...Object.keys(process.env)]
}

process.on("message", async ({ number }: Numbered<PinnedQuestion>) => {
  const special = await escapes()
  const words: PinnedAnswer = { _tag: "Read", tokenizer: { special, added: [], vocabulary: 1 }, template: false }
  process.send?.({ number, words })
})
