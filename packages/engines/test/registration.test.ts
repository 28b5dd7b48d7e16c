import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Runtime } from "@seatrial/domain"
import { engineFor, engines, engineWire } from "../src/index.ts"

const packages = join(import.meta.dirname, "../..")

/** A comparison with, or a `case` of, the name of a runtime. */
const decision = new RegExp(`(?:[!=]==\\s*|case\\s+)"(?:${Runtime.literals.join("|")})"`)

describe("the registration of engines", () => {
  it("has one entry for each runtime of the API", () => {
    assert.sameMembers(
      engines.map(({ runtime }) => runtime),
      [...Runtime.literals]
    )
    for (const runtime of Runtime.literals) {
      assert.strictEqual(engineFor(runtime)?.runtime, runtime)
      assert.strictEqual(engineFor(runtime)?.wire, engineWire(runtime))
    }
  })

  it("is the only place that depends on the name of a runtime", () => {
    const files = globSync("*/src/**/*.ts", { cwd: packages }).filter((file) => !file.startsWith("engines"))
    assert.isAbove(files.length, 100)
    const decisions = files.flatMap((file) =>
      readFileSync(join(packages, file), "utf8")
        .split("\n")
        .filter((line) => decision.test(line))
        .map((line) => `${file}: ${line.trim()}`)
    )
    assert.deepStrictEqual(decisions, [])
  })
})
