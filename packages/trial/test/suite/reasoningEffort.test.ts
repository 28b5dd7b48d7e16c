import { assert, describe, it } from "@effect/vitest"
import { withdrawCapabilities } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { reasoningEffort } from "../../src/suite/reasoningChecks.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import { subjectAt } from "./subject.ts"

const effortOf = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ reasoning_effort: Schema.String })))

/**
 * An engine whose prompt ends with a token for each effort, by `tokenOf`; null: it reports no prompts.
 * `refuses`: an effort that it does not know.
 */
const tried = (tokenOf: (effort: string) => number | null, refuses?: string) =>
  Effect.gen(function* () {
    const subject = yield* subjectAt("http://127.0.0.1:9")
    const post: typeof subject.client.post = (_, body) => {
      const { reasoning_effort: effort } = effortOf(body)
      const last = tokenOf(effort)
      const answer = {
        choices: [{ message: { content: "" }, finish_reason: "length" }],
        usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
        prompt_token_ids: last === null ? null : [1, last]
      }
      return Effect.succeed({ status: effort === refuses ? 400 : 200, text: JSON.stringify(answer) })
    }
    const capabilities = {
      ...subject.capabilities,
      supports_reasoning: true,
      reasoning_controls: { thinking_toggle: false, effort_values: ["low", "high"], token_budget: false }
    }
    const { report } = yield* runSuite({ ...subject, capabilities, client: { ...subject.client, post } }, () => [reasoningEffort])
    const left = withdrawCapabilities(capabilities, report.withdrawn ?? [])
    return `${report.passed} ${report.checks[0]?.passed} ${report.checks[0]?.detail}: ${left.reasoning_controls.effort_values.join()}`
  }).pipe(Effect.provide(FetchHttpClient.layer))

describe("reasoning_effort", () => {
  const cases: ReadonlyArray<readonly [promise: string, tokenOf: (effort: string) => number | null, refuses: string | undefined, expected: string]> = [
    ["passes if each effort makes a different prompt", (effort) => effort.length, undefined, "true true 2 efforts: low,high"],
    ["withdraws efforts that are ignored", () => 7, undefined, "true false 2 efforts, 1 different prompts: "],
    ["withdraws all efforts if one is refused", (effort) => effort.length, "high", "true false HTTP 400 for a good request: "],
    ["withdraws efforts if no prompt is reported and all have the same length", () => null, undefined, "true false 2 efforts, 1 different prompts: "]
  ]
  for (const [promise, tokenOf, refuses, expected] of cases) {
    it.effect(promise, () => Effect.map(tried(tokenOf, refuses), (result) => assert.strictEqual(result, expected)))
  }
})
