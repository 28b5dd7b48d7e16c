import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { type TrainedName, writeTrained } from "@seatrial/reference-engine/sample"
import { mergedAgreement, renderAgreement } from "@seatrial/trial"
import { Effect } from "effect"
import { startProgram } from "../e2e/ChildProgram.ts"

const run = Effect.fnUntraced(function* (folders: Readonly<Record<"base" | "adapter" | "target", string>>) {
  const words = Object.entries(folders).map(([name, folder]) => `--${name}=${folder}`)
  const program = yield* startProgram(["packages/cli/src/main.ts", "merge-weights", ...words], {})
  return { code: yield* program.exited, said: program.output() }
}, Effect.scoped)

it.live("merging the trained adapter reproduces the bytes of its merged model, and a wrong base is detected", () =>
  Effect.gen(function* () {
    const root = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "merge-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const at = (name: TrainedName) => {
      writeTrained(join(root, name), name)
      return join(root, name)
    }
    const [base, adapter, child, earlier] = [at("tiny-chat"), at("tiny-chat-adapter"), at("tiny-chat-sailor"), at("tiny-chat-first")]
    const target = join(root, "merged")
    const merged = yield* run({ base, adapter, target })
    assert.deepStrictEqual(merged, { code: 0, said: renderAgreement({ withinUlpMin: 1, othersEqual: true }) })
    assert.strictEqual(Buffer.compare(readFileSync(join(target, "model.safetensors")), readFileSync(join(child, "model.safetensors"))), 0)
    assert.deepStrictEqual(readdirSync(target).sort(), readdirSync(base).sort())

    const wrong = yield* Effect.all([mergedAgreement({ base: earlier, adapter, child }), mergedAgreement({ base, adapter: at("tiny-chat-greeter"), child })])
    for (const { withinUlpMin } of wrong) assert.isBelow(withinUlpMin, 0.5)

    const again = yield* run({ base, adapter, target })
    assert.strictEqual(again.code, 1)
    assert.match(again.said, /it already exists/)
  }).pipe(Effect.scoped)
)
