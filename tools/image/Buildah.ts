import { execFileSync, spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"

/** A message for the person who runs the program, without a stack trace. */
export class ImageProblem extends Error {}

const isInstalled = (program: string) => (process.env.PATH ?? "").split(delimiter).some((folder) => folder !== "" && existsSync(join(folder, program)))

/** Fails with the name of the Debian package if a program is missing. */
export const requireProgram = (program: string): void => {
  if (!isInstalled(program)) throw new ImageProblem(`${program} is missing. On Debian: apt-get install ${program}`)
}

/** Runs a program to its end. Its output is in the message if it fails. */
export const runProgram = (program: string, args: ReadonlyArray<string>): void => {
  const { error, status, stderr, stdout } = spawnSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 2 ** 28 })
  if (error !== undefined) throw error
  if (status === 0) return
  const lines = `${stdout}${stderr}`.trimEnd().split("\n").slice(-40)
  throw new ImageProblem([...lines, `${[program, ...args].join(" ")} failed with status ${status}.`].join("\n"))
}

/** buildah with its own storage in `folder`, so that images of the machine stay as they are. */
export class Buildah {
  readonly #storage: ReadonlyArray<string>

  constructor(folder: string) {
    this.#storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run")]
  }

  run(...args: ReadonlyArray<string>): void {
    runProgram("buildah", [...this.#storage, ...args])
  }

  /** What a command prints, or null if it fails. */
  output(...args: ReadonlyArray<string>): string | null {
    try {
      return execFileSync("buildah", [...this.#storage, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
    } catch {
      return null
    }
  }

  hasImage(name: string): boolean {
    return this.output("inspect", "--type", "image", "--format", "{{.FromImageID}}", name) !== null
  }

  /** Removes all images of the storage but one, and the layers that no other image has. An image that a container uses stays. */
  keepOnly(name: string): void {
    const kept = this.output("images", "--quiet", "--no-trunc", name)
    if (kept === null) throw new ImageProblem(`buildah cannot list the image ${name}.`)
    for (const id of this.output("images", "--quiet", "--no-trunc")?.split("\n") ?? []) {
      if (id !== "" && id !== kept) this.output("rmi", "--force", id)
    }
  }

  /** Passes a new container of the image `name` to `use`, and removes it at the end. */
  withContainer<A>(name: string, use: (container: string) => A): A {
    const container = this.output("from", "--pull-never", name)
    if (container === null) throw new ImageProblem(`buildah cannot start a container of ${name}.`)
    try {
      return use(container)
    } finally {
      this.output("rm", container)
    }
  }
}
