import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { Schema } from "effect"

const sources = new URL("../", import.meta.url)
const decodeManifest = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

/** The files of the rules: what decides, the observation, and the limits. */
const ruleFiles = (): ReadonlyArray<string> => {
  const files = ["decide", "observation"].flatMap((folder) => readdirSync(new URL(folder, sources)).map((name) => `${folder}/${name}`))
  return [...files, "limits.ts"].toSorted()
}

const read = (): string => {
  const hash = createHash("sha256")
  for (const file of ruleFiles()) hash.update(`${file}\n`).update(readFileSync(new URL(file, sources)))
  const { version } = decodeManifest(readFileSync(new URL("../package.json", sources), "utf8"))
  return `${version}+${hash.digest("hex").slice(0, 12)}`
}

let known: string | null = null

/** Identifies the rules of this operator: its version, and the digest of the files of its rules. Reads them once. */
export const readBuild = (): string => (known ??= read())
