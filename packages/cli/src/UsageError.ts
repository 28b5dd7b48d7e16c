import { Console, Data, Runtime } from "effect"
import { type CliError, CliOutput } from "effect/cli"
import { escapeUnsafe } from "./plainText.ts"

/** Ends the command with exit code 2 after help was shown because of wrong use. Requested help ends with 0. */
export class UsageError extends Data.TaggedError("UsageError") {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}

/** The error on one line: the invalid flag or argument, and the expected value. */
const formatError = (error: CliError.CliError): string =>
  error.message
    .replace(/(?:Expected: )?Schema validation failed: /u, "")
    .replace(/\?\s*\n\s*/gu, "? ")
    .replace(/\s*\n\s*/gu, ". ")
    .trimEnd()

/** One line for each error, and a last line that names the help. */
export const formatUsageErrors = (commandPath: ReadonlyArray<string>, errors: ReadonlyArray<CliError.CliError>): string =>
  [...errors.map((error) => escapeUnsafe(formatError(error))), `Run \`${[...commandPath, "--help"].join(" ")}\` for help.`].join("\n")

/** Prints usage errors to standard error, so that standard output contains only results. */
export const layerPresenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation" ? Console.error(formatUsageErrors(event.commandPath, event.errors)) : CliOutput.defaultPresenter.present(event)
})
