import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Effect } from "effect"
import { PostgresError } from "./PostgresError.ts"

const execute = promisify(execFile)

/** The account that runs Postgres; undefined if it is the current one. */
export interface PostgresAccount {
  readonly uid: number
  readonly gid: number
}

const find = async (name: string): Promise<PostgresAccount> => {
  const [uid, gid] = await Promise.all([execute("id", ["-u", name]), execute("id", ["-g", name])])
  return { uid: Number.parseInt(uid.stdout, 10), gid: Number.parseInt(gid.stdout, 10) }
}

const make = async () => {
  await execute("groupadd", ["--system", "postgres"]).catch(() => {})
  await execute("useradd", ["--system", "--gid", "postgres", "--no-create-home", "postgres"])
  return find("postgres")
}

/**
 * Postgres refuses to run as root. If the current account is root, it runs as `postgres`, which is created if it is
 * missing, or as `nobody` if it cannot be created.
 */
export const account: Effect.Effect<PostgresAccount | undefined, PostgresError> = Effect.suspend(() => {
  if (process.getuid?.() !== 0) return Effect.succeed(undefined)
  return Effect.tryPromise({
    try: () =>
      find("postgres")
        .catch(make)
        .catch(() => find("nobody")),
    catch: (cause) =>
      new PostgresError({
        reason: "Account",
        message:
          "Postgres does not run as root. There is no account `postgres`, and it cannot be created. Start Seatrial as an ordinary user, run `useradd --system postgres`, or set DATABASE_URL.",
        cause
      })
  })
})

/**
 * Whether the account can enter `directory` and run `command` in it. The shell enters it, because `spawn` would enter a
 * working directory as root.
 */
export const canRun = (who: PostgresAccount | undefined, command: string, directory: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    execute("/bin/sh", ["-c", 'cd "$0" && exec "$1" --version', directory, command], { ...who, cwd: "/" }).then(
      () => true,
      () => false
    )
  )
