import { Console, Data, Effect, Runtime } from "effect"
import { type CliError, CliOutput } from "effect/cli"
import { escapeUnsafe } from "./plainText.ts"

/** Help that was shown because the command was used wrongly ends it with exit code 2; help that was asked for, with 0. */
export class WrongUse extends Data.TaggedError("WrongUse") {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}

/** What is wrong with a flag or an argument, and what was expected. */
const inWords = (error: CliError.CliError): string => error.message.replace(/(?:Expected: )?Schema validation failed: /u, "").trimEnd()

/** Wrong use in a few lines: each mistake, and where the help is. Undefined where the whole help says more, as of a command that does not exist. */
export const wrongUseInWords = (commandPath: ReadonlyArray<string>, errors: ReadonlyArray<CliError.CliError>): string | undefined => {
  if (errors.some(({ _tag }) => _tag !== "InvalidValue" && _tag !== "MissingOption" && _tag !== "MissingArgument")) return undefined
  return [...errors.map((error) => escapeUnsafe(inWords(error))), `\`${[...commandPath, "--help"].join(" ")}\` tells more.`].join("\n")
}

/** Help that nobody asked for goes to standard error with what was wrong: a program that reads standard output finds a result there or nothing. */
export const layerPresenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.gen(function* () {
          const words = wrongUseInWords(event.commandPath, event.errors)
          if (words !== undefined) return yield* Console.error(words)
          const formatter = yield* CliOutput.Formatter
          yield* Console.error(formatter.formatHelpDoc(event.helpDoc))
          yield* Console.error(formatter.formatErrors(event.errors))
        })
      : CliOutput.defaultPresenter.present(event)
})
