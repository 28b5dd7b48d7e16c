import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { EmbeddedPostgres } from "@seatrial/local"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  export interface ProvidedContext {
    /** A superuser's address on the run's throw-away Postgres, without a database name: append `/name`. */
    readonly postgres: string
  }
}

/** Vitest's global set-up: one Postgres for the whole run, that of `npm start`; each suite makes its own database in it. */
export default async function (project: TestProject) {
  const directory = await mkdtemp(join(tmpdir(), "seatrial-test-"))
  // The account that Postgres runs as has to reach it.
  await chmod(directory, 0o755)
  const scope = Scope.makeUnsafe()
  const services = await Effect.runPromise(Layer.buildWithScope(EmbeddedPostgres.layer({ directory, durable: false }), scope))
  project.provide("postgres", Redacted.value(Context.get(services, EmbeddedPostgres).url("")).replace(/\/$/, ""))
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await rm(directory, { recursive: true, force: true })
  }
}
