import { createWriteStream, mkdirSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Logger } from "effect"

const limit = 20 * 1024 * 1024

/**
 * Logs JSON lines to `seatrial.log` in the state folder. A start renames a log of more than 20 MiB and replaces the
 * previous renamed one.
 */
export const layerLog = (folder: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const path = join(folder, "seatrial.log")
      const file = yield* Effect.acquireRelease(
        Effect.sync(() => {
          mkdirSync(folder, { recursive: true })
          if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > limit) {
            rmSync(`${path}.1`, { force: true })
            renameSync(path, `${path}.1`)
          }
          return createWriteStream(path, { flags: "a", mode: 0o600 })
        }),
        (stream) =>
          Effect.callback<void>((resume) => {
            stream.end(() => resume(Effect.void))
          })
      )
      return Logger.layer([Logger.map(Logger.formatJson, (line) => void file.write(`${line}\n`))])
    })
  )
