import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"

const root = join(import.meta.dirname, "../..")
const packages = ["api", "domain", "engines", "http", "hub", "server", "store"]

/**
 * Creates a later version of the server in a new folder: the packages of this version and one more migration with these statements. The path of
 * its program is `packages/server/src/main.ts`.
 */
export const nextVersion = (folder: string, id: number, statements: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const modules = join(folder, "node_modules")
      await mkdir(join(modules, "@seatrial"), { recursive: true })
      for (const name of await readdir(join(root, "node_modules"))) {
        if (!name.startsWith(".") && name !== "@seatrial") await symlink(join(root, "node_modules", name), join(modules, name))
      }
      for (const name of packages) {
        for (const part of ["src", "package.json"]) await cp(join(root, "packages", name, part), join(folder, "packages", name, part), { recursive: true })
        await symlink(join(folder, "packages", name), join(modules, "@seatrial", name))
      }
      const record = join(folder, "packages/store/src/migrations/migrations.ts")
      const before = await readFile(record, "utf8")
      const migration = `  "${id}_next": Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const statement of ${JSON.stringify(statements)}) yield* sql.unsafe(statement)
  }),
`
      const after = before.replace(/^export const migrations = \{\n/mu, (line) => line + migration)
      if (after === before) throw new Error("packages/store has no record of migrations that this test knows")
      await writeFile(record, `import { Effect } from "effect"\nimport { SqlClient } from "effect/sql"\n${after}`)
      return join(folder, "packages/server/src/main.ts")
    }),
    () => Effect.promise(() => rm(folder, { recursive: true, force: true }))
  )
