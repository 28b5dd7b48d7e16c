import { Console, Data, Effect, Runtime } from "effect"
import { SqlError } from "effect/sql"

/** A failure that nobody foresaw, told already. */
class BrokenOff extends Data.TaggedError("BrokenOff") {
  override readonly [Runtime.errorReported] = false
}

/** The innermost message says the most: that of a failed statement is only "Failed to execute statement". */
const reasonOf = (defect: unknown): string => {
  if (!(defect instanceof Error)) return String(defect)
  return defect.cause instanceof Error ? reasonOf(defect.cause) : defect.message || defect.name
}

const advice = (defect: unknown): string =>
  SqlError.isSqlError(defect)
    ? "Look whether Postgres answers at DATABASE_URL, then run it again: a change is made wholly or not at all."
    : "That is a fault of the command itself."

/** Tells a failure that nobody foresaw, such as Postgres going away midway, in a sentence instead of a trace, and ends with exit code 1. */
export const tellDefect = (defect: unknown) =>
  Effect.andThen(Console.error(`The command broke off: ${reasonOf(defect)}. ${advice(defect)}`), Effect.fail(new BrokenOff()))
