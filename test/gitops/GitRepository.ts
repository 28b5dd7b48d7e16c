import { execFile } from "node:child_process"
import { cp, mkdir, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"

const run = promisify(execFile)
const chart = join(import.meta.dirname, "../../charts/seatrial")
const author = { GIT_AUTHOR_NAME: "test", GIT_AUTHOR_EMAIL: "test@acme.test", GIT_COMMITTER_NAME: "test", GIT_COMMITTER_EMAIL: "test@acme.test" }

/** A Git repository with the chart in `charts/seatrial`. */
export const makeGitRepository = Effect.fnUntraced(function* (directory: string) {
  const git = (...args: ReadonlyArray<string>) => Effect.promise(() => run("git", ["-C", directory, ...args], { env: { ...process.env, ...author } }))
  yield* Effect.promise(() => cp(chart, join(directory, "charts/seatrial"), { recursive: true }))
  yield* git("init", "--quiet", "--initial-branch=main")
  const commit = (message: string) => Effect.andThen(git("add", "--all"), git("commit", "--quiet", "--message", message))
  yield* commit("The chart")
  return {
    url: `file://${directory}`,
    /** Commits a file; null removes it. */
    write: (path: string, content: string | null) =>
      Effect.andThen(
        Effect.promise(async () => {
          const file = join(directory, path)
          await mkdir(dirname(file), { recursive: true })
          await (content === null ? rm(file) : writeFile(file, content))
        }),
        commit(path)
      )
  }
})
