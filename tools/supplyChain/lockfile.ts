import { Schema } from "effect"

const Entry = Schema.Struct({
  version: Schema.optionalKey(Schema.String),
  integrity: Schema.optionalKey(Schema.String),
  link: Schema.optionalKey(Schema.Boolean),
  dev: Schema.optionalKey(Schema.Boolean),
  optional: Schema.optionalKey(Schema.Boolean),
  os: Schema.optionalKey(Schema.Array(Schema.String)),
  cpu: Schema.optionalKey(Schema.Array(Schema.String)),
  libc: Schema.optionalKey(Schema.Array(Schema.String))
})

/** One package of `package-lock.json`: its folder, its version and the hash of its archive. */
export interface LockedPackage {
  readonly path: string
  readonly name: string
  readonly version: string
  readonly integrity: string | null
  readonly isDev: boolean
  readonly isOptional: boolean
  /** Platforms that it is for; null for all. */
  readonly os: ReadonlyArray<string> | null
  readonly cpu: ReadonlyArray<string> | null
  readonly libc: ReadonlyArray<string> | null
}

const Lockfile = Schema.fromJsonString(Schema.Struct({ packages: Schema.Record(Schema.String, Entry) }))
const decode = Schema.decodeUnknownSync(Lockfile)

/** The packages that come from a registry, without the workspace's own packages. */
export const readLockfile = (text: string): ReadonlyArray<LockedPackage> =>
  Object.entries(decode(text).packages).flatMap(([path, entry]) => {
    const name = path.split("node_modules/").at(-1)
    if (!path.includes("node_modules/") || entry.link === true || name === undefined) return []
    const { cpu = null, integrity = null, libc = null, os = null, version = "" } = entry
    return [{ path, name, version, integrity, isDev: entry.dev === true, isOptional: entry.optional === true, os, cpu, libc }]
  })
