// Usage: npm run image
// Builds the product's image with buildah, from the Containerfile and the files that git tracks or would track. Writes to tools/bin/image: seatrial.oci.tar (an OCI archive, which
// `ctr --namespace k8s.io images import` and `podman load` read) and image.json (name, digest, size). Prints the path of image.json. Does nothing if no input changed.
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Schema } from "effect"
import { Buildah, ImageProblem, requireProgram } from "./Buildah.ts"
import { type BaseImage, baseImage } from "./baseImage.ts"
import { hashOf } from "./hashOf.ts"
import { describeArchive } from "./readArchive.ts"

const root = join(import.meta.dirname, "../..")
const folder = process.env.SEATRIAL_IMAGE_FOLDER ?? join(root, "tools/bin/image")
const archive = join(folder, "seatrial.oci.tar")
const description = join(folder, "image.json")

const Inputs = Schema.fromJsonString(Schema.Struct({ inputs: Schema.String }))

/** Whether the archive was built from these inputs. */
const isCurrent = (inputs: string): boolean =>
  existsSync(archive) && existsSync(description) && Schema.decodeUnknownSync(Inputs)(readFileSync(description, "utf8")).inputs === inputs

/** The files that the Containerfile may copy. */
const contextFiles = (): ReadonlyArray<string> =>
  execFileSync(
    "git",
    [
      "ls-files",
      "-z",
      "--cached",
      "--others",
      "--exclude-standard",
      "--",
      "Containerfile",
      ".containerignore",
      "package.json",
      "package-lock.json",
      "packages",
      "tools/image/container"
    ],
    { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }
  )
    .split("\0")
    .filter((file) => file !== "" && existsSync(join(root, file)))

/** Mounts for the build alone: the certificates that this machine trusts, so that npm can verify a registry behind a proxy. */
const buildMounts = (temporary: string): ReadonlyArray<string> => {
  const certificates = "/etc/ssl/certs"
  const bundle = join(certificates, "ca-certificates.crt")
  if (!existsSync(bundle)) return []
  const npmrc = join(temporary, "npmrc")
  writeFileSync(npmrc, `cafile=${bundle}\n`)
  return ["--volume", `${certificates}:${certificates}:ro`, "--volume", `${npmrc}:/root/.npmrc:ro`]
}

const build = (buildah: Buildah, base: BaseImage, files: ReadonlyArray<string>, name: string): void => {
  const temporary = mkdtempSync(join(folder, "build-"))
  const context = join(temporary, "context")
  try {
    for (const file of files) {
      mkdirSync(dirname(join(context, file)), { recursive: true })
      cpSync(join(root, file), join(context, file))
    }
    // The time of each file and of the image is fixed, so that the same files give the same digest.
    const time = process.env.SOURCE_DATE_EPOCH ?? "0"
    const places = ["--file", join(context, "Containerfile"), "--ignorefile", join(context, ".containerignore")]
    const isolation = ["--isolation", "chroot", "--network", "host", ...buildMounts(temporary)]
    buildah.run(
      "build",
      "--layers",
      "--no-cache",
      "--pull-never",
      "--timestamp",
      time,
      ...isolation,
      "--build-arg",
      `NODE=${base.name}`,
      ...places,
      "--tag",
      name,
      context
    )
    const partial = join(temporary, "seatrial.oci.tar")
    buildah.run("push", "--quiet", name, `oci-archive:${partial}:${name}`)
    renameSync(partial, archive)
  } finally {
    buildah.output("rmi", name)
    buildah.output("rmi", "--prune")
    rmSync(temporary, { recursive: true, force: true })
  }
}

const main = async (): Promise<void> => {
  requireProgram("buildah")
  mkdirSync(folder, { recursive: true })
  const buildah = new Buildah(folder)
  const files = contextFiles()
  const base = await baseImage(buildah, folder)
  // The storage is this program's own. What it holds beside the base is from an earlier version of it.
  buildah.keepOnly(base.name)
  const inputs = hashOf(root, [...files, "tools/image/main.ts"], base.name, process.env.SOURCE_DATE_EPOCH ?? "0")
  if (isCurrent(inputs)) return
  rmSync(description, { force: true })
  const started = performance.now()
  const name = `localhost/seatrial:${inputs.slice(0, 16)}`
  build(buildah, base, files, name)
  const image = { name, ...describeArchive(archive), archive: "seatrial.oci.tar", inputs, base }
  writeFileSync(description, `${JSON.stringify({ ...image, buildSeconds: Math.round((performance.now() - started) / 1000) }, null, 2)}\n`)
}

try {
  await main()
  process.stdout.write(`${description}\n`)
} catch (problem) {
  if (!(problem instanceof ImageProblem)) throw problem
  process.stderr.write(`${problem.message}\n`)
  process.exitCode = 1
}
