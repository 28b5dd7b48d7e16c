import { Cause, Config, Console, Data, Effect, Runtime, Schema } from "effect"
import { SqlError } from "effect/sql"
import { notText, schemaProblem } from "./schemaProblem.ts"

/** Why a program cannot start, as a sentence. `exitCode`: 2 for a missing or invalid setting, 1 for other causes. */
export interface StartProblem {
  readonly message: string
  readonly exitCode: number
}

/** Descriptions of the settings that most programs require and that are never printed. */
const secret: Readonly<Record<string, string>> = {
  DATABASE_URL: "the address of Postgres, as postgres://user:password@host:port/database",
  OPERATOR_WEBHOOK_SECRET: "`whsec_` and 24 to 64 bytes in base64, such as the output of `echo whsec_$(openssl rand -base64 32)`",
  OPERATOR_WEBHOOK_URL: "an address that begins with http:// or https://, without user and password",
  SEATRIAL_CURSOR_KEY: "a secret of at least 16 characters, the same for all servers",
  SEATRIAL_ENCRYPTION_KEY: "32 bytes in base64, such as the output of `openssl rand -base64 32`",
  SEATRIAL_SIGNING_KEYS:
    "32 bytes in base64, such as the output of `openssl rand -base64 32`. After the current key you can list earlier keys, separated by commas. Write an earlier key as its 32 bytes in base64, or as `public:X`. X is the value of `x` of that key in /.well-known/jwks.json"
}

/** Host, database and user of a Postgres URL, never the password. */
const placeOf = (url: string): string => {
  if (!URL.canParse(url)) return "DATABASE_URL"
  const { hostname, pathname, port, username } = new URL(url)
  return `${hostname}:${port === "" ? "5432" : port} (database ${pathname.slice(1)}, user ${username})`
}

const innermost = (error: Error): Error => (error.cause instanceof Error ? innermost(error.cause) : error)

const settingProblem = (error: Config.ConfigError): string => {
  if (!Schema.isSchemaError(error.cause)) return `The settings cannot be read: ${error.cause.message}.`
  const { message, param } = schemaProblem(error.cause.issue)
  const name = param ?? "A setting"
  // All environment values are strings, so this message means that the variable is not set.
  if (message === notText) return `${name} is not set${secret[name] === undefined ? "" : `: it takes ${secret[name]}`}.`
  return secret[name] === undefined ? `${name} ${message}.` : `${name} is wrong: it takes ${secret[name]}.`
}

const databaseProblem = (message: string, databaseUrl: string | undefined, remedy: string): StartProblem =>
  /Invalid (connection )?URL/u.test(message)
    ? { message: `DATABASE_URL is wrong: it takes ${secret.DATABASE_URL}. ${remedy}`, exitCode: 2 }
    : {
        message: `Postgres cannot be used at ${placeOf(databaseUrl ?? "")}: ${message}. Check that Postgres runs there, or correct DATABASE_URL.`,
        exitCode: 1
      }

/** The problem of an error with a known tag. `message`: the message of its innermost cause. */
const taggedProblem = (error: Error, message: string): StartProblem | undefined => {
  switch ("_tag" in error ? error._tag : undefined) {
    case "DatabaseSchemaError":
      return { message, exitCode: 1 }
    case "MigrationError":
      // All migrations run in one transaction.
      return { message: `The migration of the database failed and was rolled back. ${error.message}: ${message}.`, exitCode: 1 }
    case "IndexBuildError":
      return { message: `${error.message}: ${message}. The migrations stay applied. Remove the cause, then run \`seatrial migrate\` again.`, exitCode: 1 }
    case "KubeConnectionError":
      return { message: `The cluster cannot be used: ${message}. Check KUBECONFIG and KUBE_CONTEXT.`, exitCode: 2 }
    default:
      return undefined
  }
}

/**
 * The problem of a program that could not start because of a setting, Postgres or a port; undefined for any other
 * cause. `databaseUrl` is the address that was tried, `remedy` a sentence on where settings come from.
 */
export const startProblem = (cause: Cause.Cause<unknown>, databaseUrl: string | undefined, remedy: string): StartProblem | undefined => {
  const error = Cause.squash(cause)
  if (error instanceof Config.ConfigError) return { message: `${settingProblem(error)} ${remedy}`, exitCode: 2 }
  if (!(error instanceof Error)) return undefined
  const { message } = innermost(error)
  if (SqlError.isSqlError(error)) return databaseProblem(message, databaseUrl, remedy)
  const tagged = taggedProblem(error, message)
  if (tagged !== undefined || !message.includes("EADDRINUSE")) return tagged
  return { message: `${message}. Stop the program that uses the port, or set another port. ${remedy}`, exitCode: 1 }
}

/** A start failure that was already printed. */
class NotStarted extends Data.TaggedError("NotStarted")<{ readonly exitCode: number }> {
  override readonly [Runtime.errorReported] = false
  override get [Runtime.errorExitCode]() {
    return this.exitCode
  }
}

/**
 * Prints why a program cannot start as a sentence instead of a stack trace, if the cause is a setting, Postgres or a
 * port. `command` starts the program.
 */
export const reportStartProblem =
  (command: string) =>
  <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<A, E | NotStarted, R> =>
    Effect.catchCause(program, (cause): Effect.Effect<never, E | NotStarted> => {
      const problem = startProblem(cause, process.env.DATABASE_URL, `Set it in the environment; \`${command} --help\` lists all settings.`)
      if (problem === undefined) return Effect.failCause(cause)
      return Effect.andThen(Console.error(`${command} cannot start: ${problem.message}`), Effect.fail(new NotStarted({ exitCode: problem.exitCode })))
    })
