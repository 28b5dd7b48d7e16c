// Usage: npm run dependency-changes -- FROM [TO]
// Prints for the release notes which packages of package-lock.json changed between two commits or tags; TO defaults to the working tree.
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { compareLockfiles } from "./compareLockfiles.ts"
import { readLockfile } from "./lockfile.ts"

const root = join(import.meta.dirname, "../..")
const [from, to] = process.argv.slice(2)
if (from === undefined || from.startsWith("-") || to?.startsWith("-") === true) {
  process.stderr.write("Usage: npm run dependency-changes -- FROM [TO]\nFROM and TO are commits or tags. TO defaults to the working tree.\n")
  process.exit(2)
}
const committed = (commit: string) => {
  try {
    return execFileSync("git", ["show", `${commit}:package-lock.json`], {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
      stdio: ["ignore", "pipe", "ignore"]
    })
  } catch {
    process.stderr.write(`There is no package-lock.json at ${commit}. Name a commit or a tag of this repository.\n`)
    return process.exit(1)
  }
}
const after = to === undefined ? readFileSync(join(root, "package-lock.json"), "utf8") : committed(to)
process.stdout.write(`${compareLockfiles(readLockfile(committed(from)), readLockfile(after)).join("\n")}\n`)
