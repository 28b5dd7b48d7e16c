import { assert, describe, it } from "@effect/vitest"
import { Cause, Config, ConfigProvider, Effect, Schema } from "effect"
import { SqlError } from "effect/sql"
import { startProblem } from "../src/startProblem.ts"

const remedy = "See --help."
const address = "postgres://ann:geheim@db.example:6432/records"

const ofSetting = (config: Config.Config<unknown>, env: Readonly<Record<string, string>>) =>
  config.pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))),
    Effect.sandbox,
    Effect.flip,
    Effect.map((cause) => startProblem(cause, undefined, remedy))
  )

describe("why a program cannot start", () => {
  it.effect("names the missing setting and what it takes", () =>
    Effect.gen(function* () {
      const problem = yield* ofSetting(Config.Redacted("DATABASE_URL"), {})
      assert.strictEqual(problem?.exitCode, 2)
      assert.match(problem?.message ?? "", /^DATABASE_URL is not set: .*postgres:\/\/user:password@host:port\/database\. See --help\.$/u)
    })
  )

  it.effect("names the invalid setting and the expected value, never a secret's value", () =>
    Effect.gen(function* () {
      const port = Config.schema(Schema.NumberFromString.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })), "SERVER_PORT")
      assert.strictEqual((yield* ofSetting(port, { SERVER_PORT: "99999" }))?.message, "SERVER_PORT must be a value between 0 and 65535. See --help.")
      const key = Config.schema(Schema.Redacted(Schema.String.check(Schema.isMinLength(16))), "SEATRIAL_CURSOR_KEY")
      const problem = yield* ofSetting(key, { SEATRIAL_CURSOR_KEY: "geheim" })
      assert.match(problem?.message ?? "", /^SEATRIAL_CURSOR_KEY is wrong: it takes a secret of at least 16 characters/u)
      assert.notInclude(problem?.message, "geheim")
    })
  )

  it("shows the address of Postgres without its password", () => {
    const refused = new Error("connect ECONNREFUSED 10.0.0.1:6432")
    const error = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("Failed to connect", { cause: refused }) }) })
    const { exitCode, message = "" } = startProblem(Cause.fail(error), address, remedy) ?? {}
    assert.strictEqual(exitCode, 1)
    assert.include(message, "db.example:6432 (database records, user ann): connect ECONNREFUSED 10.0.0.1:6432")
    assert.notInclude(message, "geheim")
  })

  it("is unchanged for any other cause", () => assert.isUndefined(startProblem(Cause.die(new Error("a fault")), address, remedy)))
})
