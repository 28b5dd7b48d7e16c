import { startProblem } from "@seatrial/domain"
import { Cause, Option } from "effect"
import { CommandError } from "../CommandError.ts"
import { endedWithoutStopping, readLocalState } from "../localState.ts"

const notRunning = "Seatrial ended unexpectedly in this folder. Start Seatrial with `npm start`, or set DATABASE_URL in the environment."

/** Why the database cannot be used: missing or invalid settings (exit code 2), or Postgres does not answer (1). */
export const storeFailure = (cause: Cause.Cause<unknown>): CommandError => {
  const url = process.env.DATABASE_URL ?? Option.getOrUndefined(readLocalState())?.database_url
  const problem = startProblem(cause, url, endedWithoutStopping() ? notRunning : "Set it in the environment, or run this in the folder of `npm start`.")
  if (problem !== undefined) return new CommandError(problem)
  const error = Cause.squash(cause)
  if (error instanceof CommandError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new CommandError({ message: `Postgres cannot be used: ${reason}. Check that it answers at DATABASE_URL, then run this command again.` })
}
