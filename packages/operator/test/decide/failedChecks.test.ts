import { assert, describe, it } from "@effect/vitest"
import { type CheckOutcome, StoredCheckReport } from "@seatrial/domain"
import { Schema } from "effect"
import { failedChecks } from "../../src/decide/failedChecks.ts"
import { report } from "../observations.ts"

type Row = Partial<CheckOutcome> & Pick<CheckOutcome, "name" | "outcome">

/** The failure of a trial with these outcomes. */
const saying = (...rows: ReadonlyArray<Row>) =>
  failedChecks({
    ...report,
    passed: false,
    outcomes: rows.map((outcome) => ({ class: "required", detail: "9.1", ...outcome }))
  })

const broken: Pick<Row, "outcome" | "isReproduced" | "detail"> = { outcome: "engine_error", isReproduced: true, detail: "HTTP 500 for a good request" }
const slow: Pick<Row, "outcome" | "isComputing" | "detail"> = {
  outcome: "timeout",
  isComputing: true,
  detail: "not done within 160 s, while the engine computed"
}
const unanswered: Pick<Row, "outcome" | "isComputing" | "detail"> = {
  outcome: "timeout",
  isComputing: false,
  detail: "not done within 160 s, and no token came"
}
const hung: Pick<Row, "outcome" | "code" | "detail"> = {
  outcome: "hung",
  code: "engine_hung",
  detail: "no answer and no token within 64 s"
}
const leak: Row = { name: "batch_equals_alone", outcome: "failed", code: "cross_request_leak", detail: "2 of 64" }

describe("why a trial ends the run", () => {
  const cases: ReadonlyArray<readonly [promise: string, rows: ReadonlyArray<Row>, name: string, code: string]> = [
    [
      "the row whose numbers are wrong explains an engine that breaks, not the row that came first",
      [
        { name: "template_agrees", ...broken },
        { name: "usage_exact", ...broken },
        { name: "text_likelihood", ...broken }
      ],
      "text_likelihood",
      "output_garbage"
    ],
    [
      "without such a row an engine that breaks has failed its checks",
      [
        { name: "template_agrees", ...broken },
        { name: "usage_exact", ...broken }
      ],
      "template_agrees",
      "checks_failed"
    ],
    ["an engine that broke once has failed its checks", [{ name: "text_likelihood", ...broken, isReproduced: false }], "text_likelihood", "checks_failed"],
    ["a check that failed and then passed is named", [{ name: "stop_strings", outcome: "flaky" }], "stop_strings", "nondeterministic_output"],
    ["text of another request takes precedence, also on a slow machine", [{ name: "usage_exact", ...slow }, leak], "batch_equals_alone", "cross_request_leak"],
    ["a slow machine is no fault", [{ name: "template_agrees", ...slow }], "template_agrees", "trial_unavailable"],
    [
      "on a slow machine checks that judge by the clock are no fault either, nor is a silence after which the engine computed",
      [
        { name: "usage_exact", ...hung },
        { name: "abort_frees", outcome: "failed", isClockBound: true },
        { name: "greedy_repeats", ...slow }
      ],
      "greedy_repeats",
      "trial_unavailable"
    ],
    [
      "a fault that does not depend on time is one on a slow machine too",
      [
        { name: "usage_exact", ...slow },
        { name: "template_agrees", outcome: "failed" }
      ],
      "template_agrees",
      "template_mismatch"
    ],
    [
      "an engine that hangs explains a check without an answer before it",
      [
        { name: "template_agrees", ...unanswered },
        { name: "greedy_repeats", ...hung }
      ],
      "greedy_repeats",
      "engine_hung"
    ],
    [
      "a request that alone is never answered is the engine's fault, and no hang",
      [{ name: "template_agrees", ...unanswered }],
      "template_agrees",
      "checks_failed"
    ],
    [
      "an informational check is never the reason",
      [
        { name: "golden_answers", class: "informs", outcome: "failed" },
        { name: "usage_exact", outcome: "failed" }
      ],
      "usage_exact",
      "checks_failed"
    ],
    [
      "a capability is the reason only if there is no other",
      [
        { name: "json_mode", class: "capability", outcome: "failed" },
        { name: "usage_exact", outcome: "failed" }
      ],
      "usage_exact",
      "checks_failed"
    ]
  ]
  for (const [promise, rows, name, code] of cases) {
    it(promise, () => {
      const failure = saying(...rows)
      assert.strictEqual(failure.code, code)
      assert.match(failure.text, new RegExp(`^${name}: .*\\. [A-Z].*\\.$`))
    })
  }

  it("a trial on a slow machine names the remedy, and that the model is not at fault", () => {
    const { text } = saying({ name: "template_agrees", ...slow }, { name: "greedy_repeats", ...slow })
    assert.strictEqual(
      text,
      "template_agrees: not done within 160 s, while the engine computed. Also failed: greedy_repeats. The engine was still computing, and the model is not at fault. Deploy again when the node is less busy, or use a faster host class or a shorter context."
    )
  })

  it("a stored report of suite version 10, which has only rows, still names the failed check and the remedy", () => {
    const stored: unknown = JSON.parse(`{
      "suite": "seatrial-core", "suite_version": 10, "passed": false, "withdrawn": ["json_mode"], "fingerprints": [], "fingerprint_card": null,
      "checks": [
        { "name": "json_mode", "passed": false },
        { "name": "text_likelihood", "passed": false, "detail": "8.90 nats per token" },
        { "name": "suite", "passed": true, "detail": "seatrial-core 10: 2 run, 31 not applicable, 12 s" }
      ]
    }`)
    const failure = failedChecks(Schema.decodeUnknownSync(StoredCheckReport)(stored))
    assert.deepInclude(failure, { code: "output_garbage" })
    assert.match(failure.text, /^text_likelihood: 8\.90 nats per token\. The checkpoint/)
  })

  it("a stored report of suite version 11 without a format names the code once", () => {
    const stored: unknown = JSON.parse(`{
      "suite": "seatrial-core", "suite_version": 11, "passed": false, "fingerprints": [], "fingerprint_card": null,
      "checks": [{ "name": "batch_equals_alone", "passed": false, "detail": "cross_request_leak: 2 of 64 answers held another request's code" }],
      "outcomes": [{ "name": "batch_equals_alone", "class": "required", "outcome": "failed", "code": "cross_request_leak" }]
    }`)
    const failure = failedChecks(Schema.decodeUnknownSync(StoredCheckReport)(stored))
    assert.strictEqual(failure.code, "cross_request_leak")
    assert.match(failure.text, /^batch_equals_alone: 2 of 64 answers held another request's code\. The engine mixes up requests/)
  })

  it("an engine error on wrong numbers names the possible causes once", () => {
    assert.match(
      saying({ name: "usage_exact", ...broken }, { name: "text_likelihood", ...broken }).text,
      /^text_likelihood: HTTP 500 for a good request\. Also failed: usage_exact\. Wrong weights can produce NaN values, on which this engine fails/
    )
  })

  it("the remedy names both versions of an engine if they give different answers for a commit", () => {
    const row: Row = { name: "text_likelihood", outcome: "failed", detail: "shifted by mean 0.3000, absolute 0.3000 from an earlier trial" }
    assert.match(saying({ ...row, cause: "other_engine_version" }).text, /from an earlier trial\. Two versions of the engine/)
    assert.match(saying(row).text, /from an earlier trial\. The checkpoint, or its support/)
  })

  it("the remedy concerns the adapter if it has no effect when merged either, and otherwise the engine", () => {
    const row: Row = { name: "adapter_effect", outcome: "failed", detail: "0.0000 nats per token from the base" }
    assert.deepInclude(saying(row), { code: "adapter_not_applied" })
    assert.match(saying({ ...row, cause: "adapter_without_effect" }).text, /The adapter itself has no effect/)
    assert.match(saying(row).text, /try another runtime/)
  })
})
