import { spawn } from "node:child_process"
import { join } from "node:path"

/**
 * Runs all static checks, two at a time, and prints the output of each when it ends. The slowest come first. Exits with 1
 * if one of them fails, after all have run. What an earlier run found out about unchanged files is in
 * `node_modules/.cache`; without that folder everything is checked anew.
 */

const cache = join(import.meta.dirname, "../node_modules/.cache")

const depcruiseCache = ["--cache", `${cache}/dependency-cruiser`, "--cache-strategy", "content"]

const checks: ReadonlyArray<readonly [name: string, ...command: ReadonlyArray<string>]> = [
  ["types", "tsc", "--noEmit", "--checkers", "1", "--incremental", "--tsBuildInfoFile", `${cache}/types.tsbuildinfo`],
  ["dependencies", "depcruise", "packages", "test", "k8s", "--config", ".dependency-cruiser.json", ...depcruiseCache],
  ["format", "biome", "ci", "--colors=off", "--error-on-warnings", "."],
  ["unused code", "knip", "--cache", "--cache-location", `${cache}/knip`],
  ["OpenAPI document", "node", "test/openApi/lint.ts"],
  ["generated files", "node", "k8s/generate.ts", "--check"],
  ["language", "node", "tools/language.ts"]
]

/**
 * The compiler collects no garbage below this limit, because it uses 2 GB at most. With one checker instead of four it
 * checks what all files share once. Both together halve its processor time, and other checks use the second core.
 */
const compiler = { GOGC: "off", GOMEMLIMIT: "3GiB" }

const run = ([name, program = "", ...args]: (typeof checks)[number]) =>
  new Promise<boolean>((resolve) => {
    const env = { ...process.env, ...compiler, NODE_COMPILE_CACHE: `${cache}/node-compile` }
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env })
    const output: Array<Buffer> = []
    child.stdout.on("data", (part) => output.push(part))
    child.stderr.on("data", (part) => output.push(part))
    // `close` follows.
    child.on("error", ({ message }) => output.push(Buffer.from(`${message}. Start the checks with \`npm run check\`.\n`)))
    child.on("close", (code) => {
      process.stdout.write(`== ${name}: ${code === 0 ? "passed" : "FAILED"}\n${Buffer.concat(output)}`)
      resolve(code === 0)
    })
  })

const waiting = [...checks]
const failed: Array<string> = []
const worker = async () => {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
    if (!(await run(check))) failed.push(check[0])
  }
}
await Promise.all([worker(), worker()])
if (failed.length > 0) {
  process.stderr.write(`Failed checks: ${failed.join(", ")}\n`)
  process.exitCode = 1
}
