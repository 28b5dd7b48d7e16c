import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"
import { Client } from "pg"

const file = join(import.meta.dirname, "0.1.0.sql")

/** An API key and IDs of the database in `0.1.0.sql`: a model that serves, one whose run has begun, and a request that completed. */
export const releaseRows = {
  secret: "seatrial_KhDbZ5gqCb428YgYHzXDzCoy75ExgU3HZt0a",
  orgId: "org_01m874bdzees4ry2g85qg7ybv7",
  activated: "dep_01m874be0sewasp68chn30980v",
  waiting: "dep_01m874be2wefmaqxdmh85srgwb",
  request: "req_01m874be2kf9hbpkqxj57wqgsy"
} as const

/** Runs a script of many statements. */
export const runScript = (url: Redacted.Redacted<string>, script: string) =>
  Effect.acquireUseRelease(
    Effect.promise(async () => {
      const client = new Client({ connectionString: Redacted.value(url) })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.query(script)),
    (client) => Effect.promise(() => client.end())
  )

/** Creates a database with the schema and rows of version 0.1.0; it is dropped when the scope closes. */
export const makeReleaseDatabase = (base: string) =>
  Effect.tap(makeEmptyDatabase(base), (url) =>
    Effect.flatMap(
      Effect.promise(() => readFile(file, "utf8")),
      (script) => runScript(url, script)
    )
  )
