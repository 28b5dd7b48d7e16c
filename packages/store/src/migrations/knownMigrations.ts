import { migrations } from "./migrations.ts"
import { releaseMigrations } from "./upgrade/release.ts"

export interface RecordedMigration {
  readonly id: number
  readonly name: string
}

const parse = (key: string): RecordedMigration => ({ id: Number(key.slice(0, 4)), name: key.slice(5) })

/** The migrations of the oldest version that can be upgraded. */
export const oldestMigrations = releaseMigrations.map(parse)

/** All migrations that this program knows, in order of their numbers. */
export const knownMigrations: ReadonlyArray<RecordedMigration> = [...oldestMigrations, ...Object.keys(migrations).map(parse)]
