import { chmod, mkdtemp, rm, statfs } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { EmbeddedPostgres } from "@seatrial/local"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  export interface ProvidedContext {
    /** URL of a superuser of the temporary Postgres, without a database name: append `/name`. */
    readonly postgres: string
  }
}

const memory = "/dev/shm"
const enoughBytes = 4 * 1024 ** 3

/** The folder for its data: in memory if there is room, because each database has hundreds of files, which a disk creates slowly. */
const dataFolder = () =>
  statfs(memory).then(
    ({ bavail, bsize }) => (bavail * bsize >= enoughBytes ? memory : tmpdir()),
    () => tmpdir()
  )

/** Global setup of Vitest: one Postgres for the whole run, the same as that of `npm start`. Each suite creates its own database. */
export default async function (project: TestProject) {
  const directory = await mkdtemp(join(await dataFolder(), "seatrial-test-"))
  // The account that Postgres runs as must be able to reach it.
  await chmod(directory, 0o755)
  const scope = Scope.makeUnsafe()
  const services = await Effect.runPromise(Layer.buildWithScope(EmbeddedPostgres.layer({ directory, durable: false }), scope))
  project.provide("postgres", Redacted.value(Context.get(services, EmbeddedPostgres).url("")).replace(/\/$/, ""))
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await rm(directory, { recursive: true, force: true })
  }
}
