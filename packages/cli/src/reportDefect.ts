import { Console, Data, Effect, Runtime } from "effect"
import { SqlError } from "effect/sql"

/** An unexpected failure that has already been reported. */
class UnexpectedFailure extends Data.TaggedError("UnexpectedFailure") {
  override readonly [Runtime.errorReported] = false
}

/** The message of the innermost cause, because outer ones are generic, for example "Failed to execute statement". */
const reasonOf = (defect: unknown): string => {
  if (!(defect instanceof Error)) return String(defect)
  return defect.cause instanceof Error ? reasonOf(defect.cause) : defect.message || defect.name
}

const advice = (defect: unknown): string =>
  SqlError.isSqlError(defect)
    ? "Check that Postgres answers at DATABASE_URL, then run the command again. Each command makes its change completely or not at all."
    : "This is a bug in the command."

/**
 * Reports an unexpected failure, such as a lost connection to Postgres, in a sentence instead of a stack trace. Exits
 * with code 1.
 */
export const reportDefect = (defect: unknown) =>
  Effect.andThen(Console.error(`The command failed: ${reasonOf(defect)}. ${advice(defect)}`), Effect.fail(new UnexpectedFailure()))
