import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { StoredCheckReport } from "../src/index.ts"

const decode = (text: string) => Schema.decodeUnknownSync(Schema.fromJsonString(StoredCheckReport))(text)

describe("stored check reports", () => {
  it("suite version 10 stored only rows: they become outcomes, required unless withdrawn", () => {
    const report = decode(`{
      "suite": "seatrial-core", "suite_version": 10, "passed": true, "withdrawn": ["json_mode"], "drifted": 1,
      "fingerprints": [{ "prompt": "p1", "sha256": "aa" }], "fingerprint_card": "H100 x1",
      "checks": [
        { "name": "loaded_tensors", "passed": true, "detail": "12 values of 3 tensors are the files', checksum 0123456789abcdef as before" },
        { "name": "json_mode", "passed": false, "detail": "0 of 2 are objects" }
      ]
    }`)
    assert.deepStrictEqual(report, {
      format: 2,
      suite: "seatrial-core",
      suite_version: 10,
      passed: true,
      withdrawn: ["json_mode"],
      drifted: 1,
      fingerprints: [{ prompt: "p1", sha256: "aa" }],
      fingerprint_card: "H100 x1",
      checks: [
        { name: "loaded_tensors", passed: true, detail: "12 values of 3 tensors are the files', checksum 0123456789abcdef as before" },
        { name: "json_mode", passed: false, detail: "0 of 2 are objects" }
      ],
      outcomes: [
        { name: "loaded_tensors", class: "required", outcome: "passed" },
        { name: "json_mode", class: "capability", outcome: "failed", detail: "0 of 2 are objects" }
      ],
      loaded_checksum: "0123456789abcdef"
    })
  })

  it("suite version 11 stored outcomes without text: it comes from the rows, without the code in front of it", () => {
    const report = decode(`{
      "suite": "seatrial-core", "suite_version": 11, "passed": false, "fingerprints": [], "fingerprint_card": null,
      "checks": [
        { "name": "loaded_tensors", "passed": false, "detail": "checksum 0123456789abcdef of all that is loaded, 00 at an earlier start" },
        { "name": "usage_exact", "passed": false, "detail": "engine_hung: no answer and no token within 64 s" }
      ],
      "outcomes": [
        { "name": "loaded_tensors", "class": "required", "outcome": "failed" },
        { "name": "usage_exact", "class": "required", "outcome": "hung", "code": "engine_hung" },
        { "name": "needle", "class": "informs", "outcome": "not_applicable" }
      ]
    }`)
    assert.deepStrictEqual(report.outcomes, [
      { name: "loaded_tensors", class: "required", outcome: "failed", detail: "checksum 0123456789abcdef of all that is loaded, 00 at an earlier start" },
      { name: "usage_exact", class: "required", outcome: "hung", code: "engine_hung", detail: "no answer and no token within 64 s" },
      { name: "needle", class: "informs", outcome: "not_applicable" }
    ])
    assert.isUndefined(report.loaded_checksum)
  })

  it("a report of the current format is decoded as it is, and a later format is refused", () => {
    const current = { format: 2, suite: "s", suite_version: 11, passed: true, checks: [], outcomes: [], fingerprints: [], fingerprint_card: null }
    assert.strictEqual(JSON.stringify(decode(JSON.stringify(current))), JSON.stringify(current))
    assert.throws(() => decode(JSON.stringify({ ...current, format: 3 })))
  })

  it.each([
    [false, "failed"],
    [true, "not_applicable"]
  ] as const)("values of another version are read without changing whether the report passed: %s", (passed, outcome) => {
    const report = { format: 2, suite: "s", suite_version: 99, passed, checks: [], fingerprints: [], fingerprint_card: null }
    const stored = [
      { name: "usage_exact", class: "required", outcome: "failed", code: "code_of_tomorrow", cause: "cause_of_tomorrow", detail: "3 of 4" },
      { name: "needle", class: "class_of_tomorrow", outcome: "outcome_of_tomorrow", detail: "0 of 2" }
    ]
    assert.deepStrictEqual(decode(JSON.stringify({ ...report, outcomes: stored })).outcomes, [
      { name: "usage_exact", class: "required", outcome: "failed", detail: "3 of 4" },
      { name: "needle", class: "required", outcome, detail: "0 of 2" }
    ])
  })
})
