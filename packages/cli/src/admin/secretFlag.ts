import { Config, Effect, Option, type Redacted } from "effect"
import { Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"

/** A secret: better in the environment, under `variable`, than as a flag that others see. */
export const tokenFlag = (what: string, variable: string) =>
  Flag.Redacted("token").pipe(Flag.withDescription(`${what}; better in the environment as ${variable}`), Flag.optional)

/** The secret that was given in either way, or a sentence that names both. */
export const tokenOf = Effect.fnUntraced(function* (
  given: Option.Option<Redacted.Redacted>,
  what: string,
  variable: string
): Effect.fn.Return<Redacted.Redacted, CommandError> {
  if (Option.isSome(given)) return given.value
  const message = `${what} is missing: set ${variable} in the environment, or give it as --token, which other users of this machine may see.`
  return yield* Config.Redacted(variable).pipe(Effect.mapError(() => new CommandError({ message, exitCode: 2 })))
})
