import { connect } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { makeApiKey } from "@seatrial/domain"
import { Database } from "@seatrial/store"
import { makeTestDatabase } from "@seatrial/store/testing"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { startProcess } from "../../../test/process/startProcess.ts"

/** Runs the program in a process until the scope closes. */
const start = (env: Readonly<Record<string, string>>) =>
  startProcess([process.execPath, join(import.meta.dirname, "../src/main.ts")], { env: { ...process.env, ...env } })

/** The address of the database that the program and the test share. */
class Url extends Context.Service<Url, Redacted.Redacted<string>>()("seatrial/test/Url") {
  static readonly layer = Layer.effect(Url, makeTestDatabase(inject("postgres")))
}
const layerDatabase = Layer.unwrap(Effect.map(Url, (url) => Database.layerUrl(url))).pipe(Layer.provideMerge(Url.layer))

/** Everything that the server sends on a new connection until it closes it. */
const exchange = (port: number, headers: string) =>
  Effect.callback<string>((resume) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(`GET /v1/requests HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`))
    socket.on("data", (chunk) => {
      text += String(chunk)
    })
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(text)))
  })

it.live("the program serves, and on SIGTERM it finishes requests in flight, accepts no new ones and exits", () =>
  Effect.gen(function* () {
    const url = yield* Url
    const program = yield* start({
      DATABASE_URL: Redacted.value(url),
      SERVER_PORT: "0",
      SEATRIAL_CURSOR_KEY: "0123456789abcdef",
      SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64")
    })
    const port = Number((yield* program.logged(/Listening on [^"]*:(\d+)/))[1])
    assert.match(yield* exchange(port, ""), /^HTTP\/1.1 401 /)

    const sql = yield* SqlClient.SqlClient
    const begun = yield* Effect.gen(function* () {
      // A lock blocks the request until the program has received SIGTERM.
      yield* sql`LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE`
      const key = makeApiKey(crypto.getRandomValues(new Uint8Array(64)))
      const answer = yield* Effect.forkDetach(exchange(port, `authorization: Bearer ${key}\r\n`))
      yield* sql`SELECT 1 FROM pg_locks WHERE NOT granted`.pipe(Effect.repeat({ until: (waiting) => waiting.length > 0 }))
      program.kill("SIGTERM")
      yield* exchange(port, "").pipe(Effect.repeat({ until: (text) => text === "" }))
      return answer
    }).pipe(sql.withTransaction)
    assert.match(yield* Fiber.join(begun), /^HTTP\/1.1 401 [\s\S]*invalid_api_key/)
    assert.strictEqual(yield* program.exited, 0)
  }).pipe(Effect.provide(layerDatabase), Effect.scoped)
)
