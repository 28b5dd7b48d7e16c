import { execFile } from "node:child_process"
import { access, chmod, cp, mkdir, readFile, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Effect, Exit } from "effect"
import { eventually } from "../e2e/eventually.ts"

const root = join(import.meta.dirname, "../..")
const run = promisify(execFile)

/** The instructions of the Containerfile's first stage, those that make what the image holds. */
const buildStage = async () => {
  const text = await readFile(join(root, "Containerfile"), "utf8")
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
  const stages = lines.join("\n").split(/^FROM .*$/mu)
  return (stages[1] ?? "").split("\n").filter((line) => line !== "")
}

/** What git knows or would take under a path, as the working tree has it. */
const tracked = async (path: string) => {
  const { stdout } = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", path], { cwd: root, maxBuffer: 2 ** 24 })
  const files = stdout.split("\0").filter((file) => file !== "")
  if (files.length === 0) throw new Error(`COPY of ${path}, which is not there`)
  return files
}

/**
 * Does in a folder what the Containerfile's first stage does in an image: its own COPY and RUN lines, with this machine's shell and Node, and dies of an instruction
 * that it does not know. What the image has in /opt/seatrial is then in the folder.
 */
const build = (folder: string) =>
  Effect.promise(async () => {
    await mkdir(folder, { recursive: true })
    await chmod(folder, 0o755)
    const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ""}` }
    for (const line of await buildStage()) {
      const [instruction = "", ...words] = line.split(/\s+/u)
      switch (instruction) {
        case "WORKDIR":
          break
        case "COPY": {
          const [target = "", ...sources] = words.toReversed()
          for (const file of (await Promise.all(sources.map(tracked))).flat()) {
            // Every source keeps its own place: the target is `./` or the folder's own name.
            if (target !== "./" && !file.startsWith(`${target}/`)) throw new Error(`COPY to ${target} is not known here`)
            await cp(join(root, file), join(folder, file)).catch((cause: NodeJS.ErrnoException) => {
              // A file that is deleted in the working tree, but still in the index.
              if (cause.code !== "ENOENT") throw cause
            })
          }
          break
        }
        case "RUN":
          await run("sh", ["-c", words.join(" ")], { cwd: folder, env, maxBuffer: 2 ** 24 })
          break
        default:
          throw new Error(`${instruction} is not known here: ${line}`)
      }
    }
  })

const isThere = (path: string) =>
  Effect.promise(() =>
    access(path).then(
      () => true,
      () => false
    )
  )

/** What the image has in /opt/seatrial, and its path. */
export interface BuiltImage {
  readonly folder: string
  readonly path: ReadonlyArray<string>
  /** Programs reuse what an earlier one of the same run compiled. */
  readonly environment: Readonly<Record<string, string>>
}

/** What the image has in /opt/seatrial, in a folder that the suites of one run share: the first that needs it makes it, and nobody writes into it later. */
export const builtImage = Effect.gen(function* () {
  const shared = join(tmpdir(), "seatrial-image")
  const [folder, done, failed] = [join(shared, "opt"), join(shared, "done"), join(shared, "failed")]
  const first = yield* Effect.promise(() =>
    mkdir(shared, { mode: 0o755 }).then(
      () => true,
      () => false
    )
  )
  if (first) {
    const exit = yield* Effect.exit(build(folder))
    yield* Effect.promise(() => writeFile(Exit.isSuccess(exit) ? done : failed, ""))
    yield* exit
  } else {
    const result = yield* eventually("the image is built", Effect.all([isThere(done), isThere(failed)]), ([built, broken]) => built || broken)
    if (result[1]) return yield* Effect.die(new Error("another suite could not build the image"))
  }
  return {
    folder,
    path: [join(folder, "node_modules/.bin"), dirname(process.execPath)],
    environment: { NODE_COMPILE_CACHE: join(shared, "compiled") }
  }
})
