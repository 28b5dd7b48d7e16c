import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Schema } from "effect"
import { Buildah } from "../../tools/image/Buildah.ts"
import { readLayers } from "../../tools/image/readArchive.ts"

const root = join(import.meta.dirname, "../..")
const folder = join(root, "tools/bin/image")
const Description = Schema.fromJsonString(
  Schema.Struct({ name: Schema.String, digest: Schema.String, layers: Schema.Array(Schema.String), sizeBytes: Schema.Int, inputs: Schema.String })
)

export const archive = join(folder, "seatrial.oci.tar")

const storage = new Buildah(folder)

/** Leaves an image in the storage, as a build with an earlier base image does. */
export const leaveOldBase = (): void =>
  storage.withContainer("scratch", (container) => {
    storage.run("config", "--label", "age=old", container)
    storage.run("commit", "--quiet", container, "localhost/seatrial-base:old")
  })

/** The names of the images in the storage. */
export const storedImages = (): ReadonlyArray<string> => storage.output("images", "--noheading", "--format", "{{.Name}}:{{.Tag}}")?.split("\n") ?? []

/** Runs `npm run image` of the repository at `repository`. Its output and status go to the test's report if it fails. */
const build = (repository: string) => {
  const env = { ...process.env, SEATRIAL_IMAGE_FOLDER: folder }
  const { status, stderr, stdout } = spawnSync(process.execPath, [join(repository, "tools/image/main.ts")], { env, encoding: "utf8" })
  if (status !== 0) throw new Error(`npm run image ended with ${status}:\n${stderr}`)
  return Schema.decodeUnknownSync(Description)(readFileSync(stdout.trim(), "utf8"))
}

export const buildImage = () => build(root)

/** Builds from a copy of the repository with other file modes and times, without the archive of an earlier build. */
export const buildImageFromCopy = () => {
  const copy = mkdtempSync(join(tmpdir(), "seatrial-copy-"))
  try {
    const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 })
    for (const file of listed.split("\0").filter((name) => name !== "")) {
      mkdirSync(dirname(join(copy, file)), { recursive: true })
      cpSync(join(root, file), join(copy, file), { verbatimSymlinks: true })
    }
    execFileSync("chmod", ["-R", "go=", copy])
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
    execFileSync("git", ["init", "--quiet"], { cwd: copy })
    rmSync(join(folder, "image.json"))
    return build(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** The files of all layers: mode as `tar` prints it, owner, and path without a slash at the start and without the target of a link. */
export const listFiles = () =>
  readLayers(archive).flatMap((layer) =>
    execFileSync("tar", ["-t", "-v", "--numeric-owner", "-f", "-"], { input: layer, encoding: "utf8", maxBuffer: 2 ** 28 })
      .trimEnd()
      .split("\n")
      .map((line) => {
        const [mode = "", owner = "", , , , ...path] = line.split(/ +/u)
        return {
          mode,
          owner,
          path: path
            .join(" ")
            .replace(/^(\.\/|\/)/u, "")
            .replace(/ (->|link to) .*$/u, "")
        }
      })
  )

/** Unpacks the layers into `target`. */
export const unpack = (target: string): void => {
  // User 2000 must reach it.
  chmodSync(target, 0o755)
  for (const layer of readLayers(archive)) execFileSync("tar", ["-x", "-p", "-f", "-", "-C", target], { input: layer, maxBuffer: 2 ** 28 })
}

/** Runs a program of the unpacked image as user 2000 on a read-only root, with a writable /tmp alone. */
export const runInImage = (target: string, command: ReadonlyArray<string>, settings: Readonly<Record<string, string>> = {}) => {
  const script = [
    'mount --bind "$0" "$0"',
    'mount -o remount,ro,bind "$0"',
    'mount -t tmpfs tmpfs "$0/tmp"',
    'mount -t proc proc "$0/proc"',
    'mount --bind /dev "$0/dev"',
    'exec chroot --userspec=2000:2000 --groups=2000 "$0" /usr/bin/env -i "$@"'
  ].join(" && ")
  const variables = {
    PATH: "/opt/seatrial/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
    HOME: "/tmp",
    NODE_ENV: "production",
    ...settings
  }
  const words = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
  const { status, stderr, stdout } = spawnSync("unshare", ["--mount", "sh", "-c", script, target, ...words, ...command], { encoding: "utf8" })
  return { status, output: stdout + stderr }
}
