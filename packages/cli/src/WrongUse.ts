import { Console, Data, Effect, Runtime } from "effect"
import { CliOutput } from "effect/cli"

/** Help that was shown because the command was used wrongly ends it with exit code 2; help that was asked for, with 0. */
export class WrongUse extends Data.TaggedError("WrongUse") {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}

/** Help that nobody asked for goes to standard error with what was wrong: a program that reads standard output finds a result there or nothing. */
export const layerPresenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.gen(function* () {
          const formatter = yield* CliOutput.Formatter
          yield* Console.error(formatter.formatHelpDoc(event.helpDoc))
          yield* Console.error(formatter.formatErrors(event.errors))
        })
      : CliOutput.defaultPresenter.present(event)
})
