import { startProblem } from "@seatrial/domain"
import { Cause, Option } from "effect"
import { CommandError } from "../CommandError.ts"
import { endedWithoutStopping, readLocalState } from "../localState.ts"

const notRunning = "Seatrial ended in this folder without being stopped: start it with `npm start`, or set it in the environment."

/** Why the store cannot be used, in a sentence: settings that are missing or wrong (exit code 2), or a Postgres that does not answer (1). */
export const storeFailure = (cause: Cause.Cause<unknown>): CommandError => {
  const url = process.env.DATABASE_URL ?? Option.getOrUndefined(readLocalState())?.database_url
  const problem = startProblem(cause, url, endedWithoutStopping() ? notRunning : "Set it in the environment, or run this where `npm start` runs.")
  if (problem !== undefined) return new CommandError(problem)
  const error = Cause.squash(cause)
  if (error instanceof CommandError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new CommandError({ message: `Postgres cannot be used: ${reason}. Look whether it answers at DATABASE_URL, then run this again.` })
}
