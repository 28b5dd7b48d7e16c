import { execFile, execFileSync } from "node:child_process"
import { Data, Effect } from "effect"
import { bin, mark } from "./places.ts"

/** A program ended with an error. The message has its last output. */
export class ToolFailed extends Data.TaggedError("ToolFailed")<{ readonly message: string }> {}

export interface ToolOptions {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The environment of programs: those of tools/bin first, and the mark of the suite. */
export const environment = (more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  PATH: `${bin}:/usr/sbin:/sbin:${process.env.PATH ?? ""}`,
  HOME: process.env.HOME ?? "/root",
  [mark.name]: mark.value,
  ...more
})

/** Runs a program to its end and returns what it prints. */
export const runTool = (file: string, args: ReadonlyArray<string>, { env, input = "" }: ToolOptions = {}) =>
  Effect.callback<string, ToolFailed>((resume) => {
    const child = execFile(file, [...args], { env: environment(env), maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) =>
      resume(
        error === null
          ? Effect.succeed(stdout)
          : Effect.fail(new ToolFailed({ message: `${file} ${args.join(" ")}: ${`${stdout}${stderr}`.trim().slice(-4_000) || error.message}` }))
      )
    )
    // A program that ends without reading its input reports the reason itself.
    child.stdin?.on("error", () => undefined)
    child.stdin?.end(input)
    return Effect.sync(() => void child.kill())
  })

/** Runs a quick program of the system. Throws if it fails. */
export const runNow = (file: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(file, args, { env: environment(), encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

/** The same, for what may already be gone. */
export const tryNow = (file: string, ...args: ReadonlyArray<string>): string => {
  try {
    return runNow(file, ...args)
  } catch {
    return ""
  }
}
