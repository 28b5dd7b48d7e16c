// Usage: npm run sbom -- [--image ARCHIVE] [FOLDER]
// Writes FOLDER/npm.cdx.json (what the product takes from npm) and FOLDER/image.cdx.json (what the image holds) in the format CycloneDX; FOLDER defaults to sbom. With --image, an
// OCI archive of the image, its Debian packages are listed too; without it the document says that they are unknown.
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { Schema } from "effect"
import { readFileOfLayers } from "../image/readArchive.ts"
import { imageSbom, NpmSbom, reachable } from "./imageSbom.ts"

const root = join(import.meta.dirname, "../..")
const read = (path: string) => readFileSync(join(root, path), "utf8")
const Package = Schema.fromJsonString(Schema.Struct({ name: Schema.String, version: Schema.String }))
const packageOf = (folder: string) => Schema.decodeUnknownSync(Package)(read(join(folder, "package.json")))

const { positionals, values } = parseArgs({ allowPositionals: true, options: { image: { type: "string" } } })
const folder = resolve(positionals[0] ?? "sbom")
const dpkgStatus = values.image === undefined ? null : readFileOfLayers(values.image, "var/lib/dpkg/status")

const printed = execFileSync("npm", ["sbom", "--sbom-format", "cyclonedx"], { cwd: root, encoding: "utf8", maxBuffer: 256 * 1024 * 1024 })
const fullSbom = Schema.decodeUnknownSync(NpmSbom)(printed)
const refOf = (folder: string) => {
  const { name, version } = packageOf(folder)
  return `${name}@${version}`
}
const refs = readdirSync(join(root, "packages")).map((each) => refOf(join("packages", each)))
// The package `local` runs the whole system on one machine. The image does not have it.
const npm = { ...fullSbom, ...reachable(fullSbom, refs, [refOf("packages/local")]) }
const { version } = packageOf(".")
const product = {
  bomFormat: "CycloneDX",
  version: 1,
  ...npm,
  metadata: { timestamp: npm.metadata.timestamp, component: { type: "application", "bom-ref": `seatrial@${version}`, name: "seatrial", version } }
}

mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, "npm.cdx.json"), `${JSON.stringify(product, null, 2)}\n`)
writeFileSync(join(folder, "image.cdx.json"), `${JSON.stringify(imageSbom({ npm, version, containerfile: read("Containerfile"), dpkgStatus }), null, 2)}\n`)
process.stdout.write(
  `${folder}: npm.cdx.json with ${npm.components.length} components, image.cdx.json${dpkgStatus === null ? " (without the Debian packages: use --image ARCHIVE)" : ""}\n`
)
