import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, Organizations } from "@seatrial/store"
import { makeCaller, makeEmptyDatabase, newModel } from "@seatrial/store/testing"
import { Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { nextVersion } from "../../upgrade/nextVersion.ts"
import { get, isReady, ourServer, portOf, startServer } from "../../upgrade/runningServer.ts"

it.live("this version and the next one share a database during an upgrade; after a later migration removes something, this version is not ready", () =>
  Effect.gen(function* () {
    const url = yield* makeEmptyDatabase(inject("postgres"))
    const env = { DATABASE_URL: Redacted.value(url) }
    const folder = yield* Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-next-")))
    // The first migration only adds, like every migration of a release. The second one removes what this version uses.
    const expanding = yield* nextVersion(join(folder, "expand"), 9000, [
      "ALTER TABLE deployments ADD COLUMN next_note text NOT NULL DEFAULT 'none'",
      "CREATE TABLE next_things (org_id text NOT NULL, id text PRIMARY KEY)"
    ])
    const contracting = yield* nextVersion(join(folder, "contract"), 9000, [
      "ALTER TABLE deployments ADD COLUMN next_note text NOT NULL DEFAULT 'none'",
      "UPDATE schema_requirements SET minimum_program_schema = 9000"
    ])

    const ours = yield* startServer(ourServer, env)
    const ourPort = yield* portOf(ours)
    assert.isTrue(yield* isReady(ourPort))

    yield* Effect.gen(function* () {
      const { caller, secret } = yield* makeCaller("upgrade")
      const key = Redacted.value(secret)
      const deployments = yield* Deployments
      const next = yield* startServer(expanding, env)
      const nextPort = yield* portOf(next)
      assert.isTrue(yield* isReady(nextPort))
      assert.isTrue(yield* isReady(ourPort))
      const { id } = yield* deployments.create(newModel(caller, "k", "tiny"))
      // Both versions return what was written while both run, and this version can still start.
      const again = yield* startServer(ourServer, env)
      for (const port of [ourPort, nextPort, yield* portOf(again)]) {
        const answer = yield* get(port, `/v1/deployments/${id}`, key)
        assert.strictEqual(answer.status, 200, answer.text)
        assert.isTrue(yield* isReady(port))
      }
      const sql = yield* PgClient.PgClient
      yield* sql`DELETE FROM migrations WHERE migration_id = 9000`
      yield* sql`ALTER TABLE deployments DROP COLUMN next_note`
    }).pipe(
      Effect.provide(
        Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql).pipe(Layer.provideMerge([Database.layerUrl(url), Ids.layer]))
      )
    )

    const later = yield* startServer(contracting, env)
    assert.isTrue(yield* isReady(yield* portOf(later)))
    const { status, text } = yield* get(ourPort, "/readyz")
    assert.strictEqual(status, 503)
    assert.match(text, /supports the database schema up to 0\d{3}, but the database requires a program that supports 9000\. Start a later version/)
    // It stays alive, because a restart would not help.
    assert.strictEqual((yield* get(ourPort, "/healthz")).status, 200)
    const refused = yield* startServer(ourServer, env)
    assert.strictEqual(yield* refused.exited, 1)
    yield* refused.logged(/seatrial server cannot start: This version supports the database schema up to 0\d{3}/)
  }).pipe(Effect.scoped)
)
