import { Data, Effect } from "effect"

/** Why the embedded Postgres does not run. The message says what to do. */
export class PostgresError extends Data.TaggedError("PostgresError")<{
  readonly reason: "Unsupported" | "InUse" | "Account" | "State" | "Initialize" | "Start"
  readonly message: string
  readonly cause?: unknown
}> {}

/** Runs work on the state folder. A failure is reported as `what`, followed by the message of the system. */
export const onDisk = <A>(what: string, work: () => Promise<A>): Effect.Effect<A, PostgresError> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) =>
      new PostgresError({
        reason: "State",
        message: `The embedded Postgres could not ${what} (${cause instanceof Error ? cause.message : String(cause)}). Give it a writable folder with free space, or set DATABASE_URL.`,
        cause
      })
  })
