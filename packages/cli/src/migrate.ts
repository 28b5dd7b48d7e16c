import { Console, Duration, Effect, Schedule } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlError } from "effect/sql"
import { storeFailure } from "./admin/storeFailure.ts"
import { CommandError } from "./CommandError.ts"

/**
 * Migrates the database and exits. An installation runs this before it replaces programs, so that a long migration
 * neither delays their start nor lets a probe kill them. `migrate` applies the pending migrations and returns the
 * number and name of each.
 */
export const makeMigrateCommand = <E>(
  migrate: Effect.Effect<ReadonlyArray<readonly [id: number, name: string]>, E>,
  missingRoles: Effect.Effect<ReadonlyArray<string>, E>
) =>
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
      const applied = yield* migrate.pipe(
        Effect.retry({
          while: (error) => SqlError.isSqlError(error) && error.isRetryable,
          schedule: Schedule.spaced("1 second").pipe(Schedule.upTo({ duration: Duration.seconds(wait) }))
        }),
        Effect.catchCause((cause) => Effect.fail(storeFailure(cause)))
      )
      const missing = requireRoles ? yield* Effect.catchCause(missingRoles, (cause) => Effect.fail(storeFailure(cause))) : []
      if (missing.length > 0) {
        return yield* new CommandError({
          message: `Roles are missing: ${missing.join(", ")}. Create these roles (CREATE ROLE ... NOLOGIN) and grant them to this login, or give the login CREATEROLE. Then run this command again.`,
          exitCode: 1
        })
      }
      yield* Console.log(
        applied.length === 0
          ? "The database is up to date."
          : `Brought the database up to date: ${applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`).join(", ")}.`
      )
    })
  ).pipe(
    Command.withShortDescription("Brings the database up to date."),
    Command.withDescription(
      "Brings the database up to date and prints what it changed. Waits if another program is migrating. Requires DATABASE_URL and accepts the other database settings."
    )
  )
