import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { type Buildah, ImageProblem, requireProgram, runProgram } from "./Buildah.ts"
import { hashOf } from "./hashOf.ts"
import { isRegistry } from "./isRegistry.ts"

const root = join(import.meta.dirname, "../..")
const mirror = process.env.DEBIAN_MIRROR ?? "http://deb.debian.org/debian"
/** The npm of the pinned base image. */
const npmVersion = "11.19.1"

/** The base image of the Containerfile's argument NODE, by digest. */
const pinnedBase = (): string => {
  const [, name] = /^ARG NODE=(\S+@sha256:[0-9a-f]{64})$/mu.exec(readFileSync(join(root, "Containerfile"), "utf8")) ?? []
  if (name === undefined) throw new ImageProblem("The Containerfile names no base image as ARG NODE=NAME:TAG@sha256:DIGEST.")
  return name
}

const canReach = async (image: string): Promise<boolean> => {
  // Docker Hub's registry has another name than its images.
  const [host = ""] = image.replace(/^docker\.io\//u, "registry-1.docker.io/").split("/")
  return await isRegistry(`https://${host}`)
}

/** A Debian system with Node and npm, like the pinned base image: Debian's packages from its mirror, Node from npm's package `node`. */
const makeRoot = (folder: string): string => {
  const target = join(folder, "root")
  requireProgram("debootstrap")
  runProgram("debootstrap", ["--variant=minbase", "bookworm", target, mirror])
  runProgram("install", ["-m", "755", join(root, "node_modules/node/bin/node"), join(target, "usr/local/bin/node")])
  const npm = join(target, "usr/local/lib/node_modules/npm")
  mkdirSync(npm, { recursive: true })
  runProgram("npm", ["pack", `npm@${npmVersion}`, "--silent", "--pack-destination", folder])
  runProgram("tar", ["-x", "-f", join(folder, `npm-${npmVersion}.tgz`), "-C", npm, "--strip-components", "1", "--no-same-owner"])
  for (const command of ["npm", "npx"]) symlinkSync(`../lib/node_modules/npm/bin/${command}-cli.js`, join(target, "usr/local/bin", command))
  return target
}

const makeLocalBase = (buildah: Buildah, name: string, folder: string): void => {
  if (process.getuid?.() !== 0) throw new ImageProblem("No container registry can be reached, and debootstrap needs root to make the base image.")
  process.stderr.write("No container registry can be reached. Making the base image from Debian's packages.\n")
  const temporary = mkdtempSync(join(folder, "base-"))
  try {
    const target = makeRoot(temporary)
    buildah.withContainer("scratch", (container) => {
      buildah.run("copy", "--quiet", container, target, "/")
      buildah.run("commit", "--quiet", "--timestamp", "0", container, name)
    })
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

export interface BaseImage {
  readonly name: string
  readonly source: "registry" | "debootstrap"
}

/**
 * The image to build on: the pinned one, or one made on this machine if its registry cannot be reached. That one is made once for each version of Node and of this file; delete the
 * folder to get newer packages of Debian.
 */
export const baseImage = async (buildah: Buildah, folder: string): Promise<BaseImage> => {
  const pinned = pinnedBase()
  if (await canReach(pinned)) {
    if (!buildah.hasImage(pinned)) buildah.run("pull", "--quiet", pinned)
    return { name: pinned, source: "registry" }
  }
  const hash = hashOf(root, ["tools/image/baseImage.ts", "node_modules/node/package.json"], mirror)
  const name = `localhost/seatrial-base:${hash.slice(0, 16)}`
  if (!buildah.hasImage(name)) makeLocalBase(buildah, name, folder)
  return { name, source: "debootstrap" }
}
