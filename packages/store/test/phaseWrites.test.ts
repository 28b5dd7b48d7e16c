import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const sources = join(import.meta.dirname, "../src")

const filesWith = (pattern: RegExp): ReadonlyArray<string> =>
  readdirSync(sources, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".ts") && !name.startsWith("migrations") && pattern.test(readFileSync(join(sources, name), "utf8"))
  )

describe("metrics, history and notifications of a run have one place to hang on:", () => {
  it("only insertRun inserts into deployments", () => assert.deepStrictEqual(filesWith(/INSERT INTO deployments\b/), ["runs/insertRun.ts"]))

  it("only transition and insertRun write the history, hence a phase", () =>
    assert.sameMembers([...filesWith(/INSERT INTO deployment_phases\b/)], ["runs/insertRun.ts", "runs/transition.ts"]))

  it("no other UPDATE of deployments sets the phase", () =>
    assert.deepStrictEqual(filesWith(/UPDATE deployments( \w+)?\s+SET[^`]*\bphase(_since|_count)?\s*=/), []))
})
