import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The text files of a state folder: logs, settings and files of pods, without the weights and the files of the database. */
export const readTexts = (folder: string): ReadonlyArray<{ readonly path: string; readonly text: string }> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => join(parentPath, name))
    .filter((path) => !path.startsWith(join(folder, "volumes")) && !path.startsWith(join(folder, "postgres/data")))
    .map((path) => ({ path, text: readFileSync(path, "latin1") }))
