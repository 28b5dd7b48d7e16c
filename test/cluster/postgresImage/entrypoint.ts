import { spawn, spawnSync } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

// What the entrypoint of the image `postgres` does by its documentation: makes PGDATA with POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB where there is none, then
// becomes the server. POSTGRES_BINARIES and POSTGRES_ADDRESS are this machine's.
const { PGDATA = "", POSTGRES_ADDRESS = "", POSTGRES_BINARIES = "", POSTGRES_DB = "", POSTGRES_PASSWORD = "", POSTGRES_USER = "" } = process.env
// Postgres does not run as root; the volume is given to its account, as `fsGroup` asks.
const root = process.getuid?.() === 0
const nobody = 65_534
const account = root ? { uid: nobody, gid: nobody } : {}
const env = { PATH: "/usr/bin:/bin", LANG: "C", LC_ALL: "C" }
const own = (path: string) => {
  if (root) chownSync(path, nobody, nobody)
}
const bin = (name: string) => join(POSTGRES_BINARIES, "bin", name)
const run = (name: string, args: ReadonlyArray<string>, input = "") => {
  const { status, stderr, error } = spawnSync(bin(name), args, { ...account, env, input, cwd: dirname(PGDATA) })
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${error?.message ?? ""}${stderr?.toString() ?? ""}`)
}

own(dirname(dirname(PGDATA)))
mkdirSync(PGDATA, { recursive: true })
own(dirname(PGDATA))
chmodSync(PGDATA, 0o700)
own(PGDATA)
if (!existsSync(join(PGDATA, "PG_VERSION"))) {
  const password = join(dirname(PGDATA), "password")
  writeFileSync(password, POSTGRES_PASSWORD, { mode: 0o600 })
  own(password)
  run("initdb", [
    `--pgdata=${PGDATA}`,
    `--username=${POSTGRES_USER}`,
    `--pwfile=${password}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--no-instructions",
    "--no-sync"
  ])
  rmSync(password)
  run("postgres", ["--single", "-D", PGDATA, "postgres"], `CREATE DATABASE "${POSTGRES_DB}"\n`)
}
const server = spawn(bin("postgres"), ["-D", PGDATA, "-c", `listen_addresses=${POSTGRES_ADDRESS}`, "-c", "unix_socket_directories=", "-c", "fsync=off"], {
  ...account,
  env,
  cwd: PGDATA,
  stdio: "inherit"
})
for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => server.kill("SIGINT"))
server.once("exit", (code) => process.exit(code ?? 1))
