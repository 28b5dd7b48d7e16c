import { access, mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"

/** Installs into a folder once and returns the folder. Removes the remains of an incomplete installation first. */
export const installOnce = Effect.fnUntraced(function* <E>(to: string, install: (to: string) => Effect.Effect<void, E>): Effect.fn.Return<string, E> {
  const complete = join(to, ".complete")
  const isInstalled = yield* Effect.promise(() =>
    access(complete).then(
      () => true,
      () => false
    )
  )
  if (isInstalled) return to
  yield* Effect.promise(async () => {
    await rm(to, { recursive: true, force: true })
    await mkdir(to, { recursive: true })
  })
  yield* install(to)
  yield* Effect.promise(() => writeFile(complete, ""))
  return to
})
