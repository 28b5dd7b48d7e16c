import { Console, Data, Runtime } from "effect"
import { type CliError, CliOutput } from "effect/cli"
import { escapeUnsafe } from "./plainText.ts"

/** Help that was shown because the command was used wrongly ends it with exit code 2; help that was asked for, with 0. */
export class WrongUse extends Data.TaggedError("WrongUse") {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}

/** What is wrong with a flag or an argument, and what was expected. */
const inWords = (error: CliError.CliError): string =>
  error.message
    .replace(/(?:Expected: )?Schema validation failed: /u, "")
    .replace(/\?\s*\n\s*/gu, "? ")
    .replace(/\s*\n\s*/gu, ". ")
    .trimEnd()

/** Wrong use in a line for each mistake, and one that says where the help is. */
export const wrongUseInWords = (commandPath: ReadonlyArray<string>, errors: ReadonlyArray<CliError.CliError>): string =>
  [...errors.map((error) => escapeUnsafe(inWords(error))), `\`${[...commandPath, "--help"].join(" ")}\` shows how.`].join("\n")

/** Wrong use goes to standard error: a program that reads standard output finds a result there or nothing. */
export const layerPresenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation" ? Console.error(wrongUseInWords(event.commandPath, event.errors)) : CliOutput.defaultPresenter.present(event)
})
