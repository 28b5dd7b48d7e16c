import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"

/** A program that local pods can start until the scope closes, wherever the given one is: in a pod, `/tmp` is another folder. */
export const reachable = (program: string) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync("/var/tmp/seatrial-program-")),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ).pipe(
    Effect.map((folder) => {
      const path = join(folder, "program")
      writeFileSync(path, `#!/bin/sh\nexec "${program}" "$@"\n`, { mode: 0o755 })
      return path
    })
  )
