import { createHash } from "node:crypto"
import { lstatSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The SHA-256 of files: of their names, whether they are executable, and their contents. Times and owners do not change it. */
export const hashOf = (root: string, files: ReadonlyArray<string>, ...settings: ReadonlyArray<string>): string => {
  const hash = createHash("sha256").update(JSON.stringify(settings))
  for (const file of [...files].sort()) {
    const path = join(root, file)
    const contents = readFileSync(path)
    const isExecutable = (lstatSync(path).mode & 0o100) !== 0
    hash.update(`\n${file}\n${isExecutable}\n${contents.length}\n`).update(contents)
  }
  return hash.digest("hex")
}
