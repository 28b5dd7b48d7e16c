import { Config, Effect, Option, type Redacted } from "effect"
import { Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"

/** A flag for a secret. The environment variable `variable` is safer, because other users can see the flag. */
export const tokenFlag = (what: string, variable: string) =>
  Flag.Redacted("token").pipe(Flag.withDescription(`${what}; prefer the environment variable ${variable}`), Flag.optional)

/** The secret of the flag or the environment. Fails with a message that names both. */
export const tokenOf = Effect.fnUntraced(function* (
  flag: Option.Option<Redacted.Redacted>,
  what: string,
  variable: string
): Effect.fn.Return<Redacted.Redacted, CommandError> {
  if (Option.isSome(flag)) return flag.value
  const message = `${what} is missing. Set ${variable} in the environment, or use --token, which other users of this machine may see.`
  return yield* Config.Redacted(variable).pipe(Effect.mapError(() => new CommandError({ message, exitCode: 2 })))
})
