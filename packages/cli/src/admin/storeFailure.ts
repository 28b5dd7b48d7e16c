import { Cause, Config } from "effect"
import { CommandError } from "../CommandError.ts"

/** Why the store cannot be used, in a sentence: settings that are missing or wrong (exit code 2), or a Postgres that does not answer (1). */
export const storeFailure = (cause: Cause.Cause<unknown>): CommandError => {
  const error = Cause.squash(cause)
  if (error instanceof Config.ConfigError) {
    return new CommandError({
      message: `A setting is missing or wrong: ${error.message.replaceAll(/\s+/g, " ")}. Set DATABASE_URL (and SEATRIAL_ENCRYPTION_KEY for hub connections), or run this where \`npm start\` runs.`,
      exitCode: 2
    })
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new CommandError({ message: `Postgres cannot be used: ${reason}. Look whether it answers at DATABASE_URL, then run this again.` })
}
