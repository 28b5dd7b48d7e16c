import { spawn } from "node:child_process"
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { endStale } from "../../src/node/staleProcesses.ts"
import { startOf } from "../../src/process/ProcessIdentity.ts"

const sleeper = Effect.acquireRelease(
  Effect.callback<number>((resume) => {
    const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" })
    child.once("spawn", () => resume(Effect.succeed(child.pid ?? 0)))
  }),
  (pid) =>
    Effect.sync(() => {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // Already gone.
      }
    })
)

describe("endStale", () => {
  it.live("kills what a killed agent left behind, and no process that reuses its ID", () =>
    Effect.gen(function* () {
      const state = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-stale-test-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
      )
      const [left, foreign] = [yield* sleeper, yield* sleeper]
      const files = [join(state, "pods", "a", "main.pid"), join(state, "pods", "b", "main.pid")] as const
      yield* Effect.promise(async () => {
        await mkdir(join(state, "pods", "a"), { recursive: true })
        await mkdir(join(state, "pods", "b"), { recursive: true })
        await writeFile(files[0], `${left} ${await startOf(left)}`)
        await writeFile(files[1], `${foreign} 1`)
      })
      yield* endStale(state)
      assert.isUndefined(yield* Effect.promise(() => startOf(left)))
      assert.isDefined(yield* Effect.promise(() => startOf(foreign)))
      for (const path of files)
        assert.isFalse(
          yield* Effect.promise(() =>
            stat(path).then(
              () => true,
              () => false
            )
          )
        )
    }).pipe(Effect.scoped)
  )
})
