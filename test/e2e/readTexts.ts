import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Every file of a state folder that people may read: logs, settings, what pods were given. Not the weights and not the database's own files. */
export const readTexts = (folder: string): ReadonlyArray<{ readonly path: string; readonly text: string }> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => join(parentPath, name))
    .filter((path) => !path.startsWith(join(folder, "volumes")) && !path.startsWith(join(folder, "postgres/data")))
    .map((path) => ({ path, text: readFileSync(path, "latin1") }))
