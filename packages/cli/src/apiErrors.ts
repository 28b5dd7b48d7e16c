import type { ClientFailure, PublicError } from "@seatrial/client"
import { Effect } from "effect"
import { CommandError } from "./CommandError.ts"

/** An API error as an error of the command: the message, the code, the parameter and the request ID. */
export const toCommandError = (failure: Pick<PublicError, "error"> | ClientFailure | CommandError): CommandError => {
  if (failure instanceof CommandError) return failure
  if ("error" in failure) {
    const { code, message, param, request_id } = failure.error
    const details = [code, param, request_id].filter((detail) => detail !== null && detail !== undefined)
    return new CommandError({ message: `${message} (${details.join(", ")})` })
  }
  return new CommandError({ message: failure.message, exitCode: failure._tag === "InvalidInput" ? 2 : 4 })
}

/** Maps API errors to errors of the command. */
export const withCommandErrors = <A, R>(effect: Effect.Effect<A, PublicError | ClientFailure | CommandError, R>): Effect.Effect<A, CommandError, R> =>
  Effect.mapError(effect, toCommandError)
