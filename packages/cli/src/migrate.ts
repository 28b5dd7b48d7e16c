import { Console, Duration, Effect, Schedule } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlError } from "effect/sql"
import { storeFailure } from "./admin/storeFailure.ts"
import { CommandError } from "./CommandError.ts"

interface Migration {
  /** Applies the pending migrations, and returns the number and name of each. */
  readonly migrate: Effect.Effect<ReadonlyArray<readonly [id: number, name: string]>, unknown>
  /** Builds the indexes that the migrations left to it. */
  readonly completeIndexes: Effect.Effect<boolean, unknown>
  readonly missingRoles: Effect.Effect<ReadonlyArray<string>, unknown>
}

const keyOf = ([id, name]: readonly [id: number, name: string]) => `${String(id).padStart(4, "0")}_${name}`

/** Waits up to `wait` seconds for a Postgres that does not answer yet. */
const withPostgres = <A>(effect: Effect.Effect<A, unknown>, wait: number) =>
  effect.pipe(
    Effect.retry({
      while: (error) => SqlError.isSqlError(error) && error.isRetryable,
      schedule: Schedule.spaced("1 second").pipe(Schedule.upTo({ duration: Duration.seconds(wait) }))
    }),
    Effect.catchCause((cause) => Effect.fail(storeFailure(cause)))
  )

/**
 * Migrates the database and exits. An installation runs this before it replaces programs, so that a long migration
 * neither delays their start nor lets a probe kill them.
 */
export const makeMigrateCommand = ({ completeIndexes, migrate, missingRoles }: Migration) =>
  Command.make(
    "migrate",
    {
      wait: Flag.Int("wait").pipe(
        Flag.withDescription("Seconds to wait for a Postgres that does not answer yet"),
        Flag.filter(
          (seconds) => seconds >= 0,
          () => "a number of seconds, 0 or more"
        ),
        Flag.withDefault(0)
      ),
      requireRoles: Flag.Boolean("require-roles").pipe(
        Flag.withDescription("Fail if the roles of the programs are missing and cannot be created"),
        Flag.withDefault(false)
      )
    },
    Effect.fn(function* ({ requireRoles, wait }) {
      const applied = yield* withPostgres(migrate, wait)
      // Before the steps that may fail, because these migrations stay applied.
      if (applied.length > 0) yield* Console.log(`Brought the database up to date: ${applied.map(keyOf).join(", ")}.`)
      yield* withPostgres(completeIndexes, wait)
      const missing = requireRoles ? yield* Effect.catchCause(missingRoles, (cause) => Effect.fail(storeFailure(cause))) : []
      if (missing.length > 0) {
        return yield* new CommandError({
          message: `Roles are missing: ${missing.join(", ")}. Create these roles (CREATE ROLE ... NOLOGIN) and grant them to this login, or give the login CREATEROLE. Then run this command again.`,
          exitCode: 1
        })
      }
      if (applied.length === 0) yield* Console.log("The database is up to date.")
    })
  ).pipe(
    Command.withShortDescription("Brings the database up to date."),
    Command.withDescription(
      "Brings the database up to date and prints what it changed. Waits if another program is migrating. Requires DATABASE_URL and accepts the other database settings."
    )
  )
