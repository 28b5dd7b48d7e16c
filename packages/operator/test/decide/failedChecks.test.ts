import { assert, describe, it } from "@effect/vitest"
import { changesNothing, trialBy } from "@seatrial/trial"
import { failedChecks } from "../../src/decide/failedChecks.ts"
import { report } from "../observations.ts"

describe("an engine that breaks over good requests", () => {
  it("is told by the row whose numbers are wrong, where there is one, and by no row that merely came first", () => {
    const detail = "HTTP 500 for a good request"
    const failing = (...names: ReadonlyArray<string>) =>
      failedChecks({ ...report, passed: false, checks: names.map((name) => ({ name, passed: false, detail })) })
    const garbage = failing("template_agrees", "usage_exact", "text_likelihood")
    assert.deepInclude(garbage, { code: "output_garbage" })
    assert.match(
      garbage.text,
      /^text_likelihood: HTTP 500 for a good request\. Failed too: template_agrees, usage_exact\. The engine breaks where numbers turn into NaN/
    )
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

it("what to do about texts that another version of the engine found otherwise is about either version", () => {
  const saying = (of: string) => {
    const detail = `shifted by mean 0.3000, absolute 0.3000 from ${of}`
    return failedChecks({ ...report, passed: false, checks: [{ name: "text_likelihood", passed: false, detail }] })
  }
  assert.match(saying(`${trialBy}0.32.0`).text, /from an earlier trial by 0\.32\.0\. Two versions of the engine/)
  assert.match(saying("an earlier trial").text, /from an earlier trial\. The checkpoint, or its support/)
  assert.strictEqual(saying(`${trialBy}0.32.0`).code, "output_garbage")
})

describe("what to do about an adapter without effect", () => {
  const saying = (detail: string) => failedChecks({ ...report, passed: false, checks: [{ name: "adapter_effect", passed: false, detail }] })

  it("is about the adapter where that changes nothing when it is merged either, else about the engine", () => {
    const empty = saying(`0.0000 nats per token from the base; ${changesNothing}: 0.0000 from the base`)
    assert.deepInclude(empty, { code: "adapter_not_applied" })
    assert.match(empty.text, /The adapter itself changes nothing/)
    const dropped = saying("0.0000 nats per token from the base, which is 0.0000 from itself, over 504")
    assert.deepInclude(dropped, { code: "adapter_not_applied" })
    assert.match(dropped.text, /try another runtime/)
  })
})
