import { Data, Runtime } from "effect"
import { CliError } from "effect/cli"

/**
 * A failure of the command. The message tells the user the problem and the remedy. `exitCode`: 1 refused or failed (the
 * default), 2 wrong use or configuration, 3 not verified, 4 the API cannot be reached or understood, 130 interrupted.
 */
export class CommandError extends Data.TaggedError("CommandError")<{ readonly message: string; readonly exitCode?: number }> {
  override get [CliError.userMessage]() {
    return this.message
  }
  override get [Runtime.errorExitCode]() {
    return this.exitCode ?? 1
  }
}
