import { Data, Runtime } from "effect"

/** Help that was shown because the command was used wrongly ends it with exit code 2; help that was asked for, with 0. */
export class WrongUse extends Data.TaggedError("WrongUse") {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}
