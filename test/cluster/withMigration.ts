import { execFile } from "node:child_process"
import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import type { BuiltImage } from "./buildImage.ts"

const run = promisify(execFile)

/** The image of a later version, in a new folder: the same files, and an additional migration with these statements. */
export const withMigration = ({ environment, folder, path }: BuiltImage, to: string, id: number, statements: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    // Files are shared with the existing image, so that a different file must be a new one.
    await run("cp", ["-al", folder, to])
    const migrations = join(to, "packages/store/src/migrations/migrations.ts")
    const before = await readFile(migrations, "utf8")
    const list = `[${statements.map((statement) => JSON.stringify(statement)).join(", ")}]`
    const migration = `  "${id}_next": Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const statement of ${list}) yield* sql.unsafe(statement)
  }),
`
    const after = before.replace(/^export const migrations = \{\n/mu, (line) => line + migration)
    if (after === before) throw new Error("packages/store has no record of migrations that this test knows")
    await rm(migrations)
    await writeFile(migrations, `import { Effect } from "effect"\nimport { SqlClient } from "effect/sql"\n${after}`)
    return { path: path.map((place) => place.replace(folder, to)), environment }
  })
