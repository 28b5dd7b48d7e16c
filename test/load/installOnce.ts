import { access, mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"

/** Installs into a folder once, and gives it; what an installation that was cut short has left is taken away before the next. */
export const installOnce = Effect.fnUntraced(function* <E>(to: string, install: (to: string) => Effect.Effect<void, E>): Effect.fn.Return<string, E> {
  const complete = join(to, ".complete")
  const there = yield* Effect.promise(() =>
    access(complete).then(
      () => true,
      () => false
    )
  )
  if (there) return to
  yield* Effect.promise(async () => {
    await rm(to, { recursive: true, force: true })
    await mkdir(to, { recursive: true })
  })
  yield* install(to)
  yield* Effect.promise(() => writeFile(complete, ""))
  return to
})
