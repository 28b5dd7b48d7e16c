import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { installOnce } from "./installOnce.ts"

it.effect("a complete installation is kept, and an incomplete one is removed before the next attempt", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-install-"))),
      (made) => Effect.promise(() => rm(made, { recursive: true }))
    )
    const at = join(folder, "peer-1.0.0")
    const files = Effect.promise(async () => (await readdir(at)).sort())
    const write = (name: string) => (to: string) => Effect.promise(() => writeFile(join(to, name), name))

    const cut = yield* Effect.flip(installOnce(at, (to) => Effect.andThen(write("half")(to), Effect.fail("no network"))))
    assert.strictEqual(cut, "no network")
    assert.deepStrictEqual(yield* files, ["half"])

    assert.strictEqual(yield* installOnce(at, write("whole")), at)
    assert.deepStrictEqual(yield* files, [".complete", "whole"])

    yield* installOnce(at, () => Effect.fail("it is there"))
    assert.deepStrictEqual(yield* files, [".complete", "whole"])
  }).pipe(Effect.scoped)
)
