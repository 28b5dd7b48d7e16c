import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { flagNames, Runtime } from "@seatrial/domain"
import { engineFor, engines, engineWire } from "../src/index.ts"
import { sglangFlags } from "../src/sglang/flags.ts"
import { vllmFlags } from "../src/vllm/flags.ts"

const packages = join(import.meta.dirname, "../..")

/** A comparison with, or a `case` of, the name of a runtime. */
const decision = new RegExp(`(?:[!=]==\\s*|case\\s+)"(?:${Runtime.literals.join("|")})"`)

/** The lines of other packages that match. */
const linesOutside = (pattern: RegExp, except = /^engines\//): ReadonlyArray<string> => {
  const files = globSync("*/src/**/*.ts", { cwd: packages }).filter((file) => !except.test(file))
  assert.isAbove(files.length, 100)
  return files.flatMap((file) =>
    readFileSync(join(packages, file), "utf8")
      .split("\n")
      .filter((line) => pattern.test(line))
      .map((line) => `${file}: ${line.trim()}`)
  )
}

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

  it("is the only place that depends on the name of a runtime", () => assert.deepStrictEqual(linesOutside(decision), []))

  it("is the only place that names the variables of an engine", () => {
    const names = engines.flatMap(({ variables }) => variables)
    assert.isAbove(names.length, 10)
    assert.deepStrictEqual(linesOutside(new RegExp(`"(?:${names.join("|")})"`), /^(?:engines|reference-engine)\//), [])
  })

  it("is the only place that names flags, except the table of those whose meaning Seatrial knows", () => {
    // Names of one word are too common to look for.
    const names = [...new Set([...Object.keys(vllmFlags), ...Object.keys(sglangFlags)])].filter((name) => name.includes("_"))
    assert.isAbove(names.length, 40)
    const flag = new RegExp(`^(?! *(?:\\*|//|/\\*)).*\\b(?:${names.join("|")})\\b(?!\\\\?\\.json)`)
    assert.deepStrictEqual(linesOutside(flag, /^(?:engines|reference-engine)\/|^domain\/src\/flagNames\.ts$/), [])
  })

  it("takes each flag whose meaning Seatrial knows", () => {
    for (const { flagIssue, runtime } of engines) {
      const { batchInvariant, ownSampling, quantization, slots, textOnly } = flagNames[runtime]
      const known = [
        [slots, 16],
        [quantization, "fp8"],
        [batchInvariant, true],
        [textOnly, true],
        [ownSampling?.flag ?? null, ownSampling?.value]
      ] as const
      for (const [flag, value] of known) if (flag !== null) assert.isNull(flagIssue({ [flag]: value }), `${runtime}: ${flag}`)
    }
  })
})
