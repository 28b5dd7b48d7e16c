import { Console, Data, Effect, Runtime } from "effect"
import { CliError } from "effect/cli"

/** What the user of the command has to know: a sentence on what is wrong and what to do. `exitCode`: 1 failed (the default), 2 wrong use, 3 not verified. */
export class CommandError extends Data.TaggedError("CommandError")<{ readonly message: string; readonly exitCode?: number }> {
  override get [CliError.userMessage]() {
    return this.message
  }
  override get [Runtime.errorExitCode]() {
    return this.exitCode ?? 1
  }
}

/** Help that was shown because the command was used wrongly ends it with exit code 2; help that was asked for, with 0. */
export class WrongUse extends Data.TaggedError("WrongUse") {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}

const reasonOf = (defect: unknown): string => (defect instanceof Error ? defect.message : String(defect))

/** Tells a failure that nobody foresaw, such as Postgres going away midway, in a sentence instead of a trace. */
export const tellDefect = (defect: unknown) =>
  Effect.gen(function* () {
    const failed = new CommandError({
      message: `The command broke off: ${reasonOf(defect)}. Look whether Postgres answers at DATABASE_URL, then run it again: a change is made wholly or not at all.`
    })
    yield* Console.error(`Error: ${failed.message}`)
    Object.assign(failed, { [Runtime.errorReported]: false })
    return yield* failed
  })
