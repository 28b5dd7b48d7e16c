import { assert, describe, it } from "@effect/vitest"
import { failedChecks } from "../../src/decide/failedChecks.ts"
import { report } from "../observations.ts"

describe("an engine that breaks over good requests", () => {
  it("is told by the row whose numbers are wrong, where there is one, and by no row that merely came first", () => {
    const detail = "HTTP 500 for a good request"
    const failing = (...names: ReadonlyArray<string>) =>
      failedChecks({ ...report, passed: false, checks: names.map((name) => ({ name, passed: false, detail })) })
    const garbage = failing("template_agrees", "usage_exact", "text_likelihood")
    assert.deepInclude(garbage, { code: "output_garbage" })
    assert.match(garbage.text, /^text_likelihood: HTTP 500 for a good request\. Failed too: template_agrees, usage_exact\./)
    assert.deepInclude(failing("template_agrees", "usage_exact"), { code: "checks_failed" })
  })

  it("once is the engine's error, whatever the row is about", () => {
    const detail = "engine error, then passed (HTTP 500 for a good request)"
    for (const name of ["greedy_repeats", "text_likelihood", "fidelity", "usage_exact"]) {
      const { code, text } = failedChecks({ ...report, passed: false, checks: [{ name, passed: false, detail }] })
      assert.strictEqual(code, "checks_failed", name)
      assert.match(text, /: engine error, then passed \(HTTP 500 for a good request\)\. The engine does not serve/)
    }
  })
})
