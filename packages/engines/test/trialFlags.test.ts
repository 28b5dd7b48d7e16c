import { assert, describe, it } from "@effect/vitest"
import { checkedTopTokens, mostTrialRequests, type Runtime } from "@seatrial/domain"
import { engineFor } from "../src/index.ts"

const cases: ReadonlyArray<readonly [runtime: Runtime, flag: string, least: number, why: string]> = [
  ["vllm", "max_logprobs", checkedTopTokens, "the checks of a deployment's trial ask for the 5 likeliest tokens."],
  ["vllm", "max_num_queued_reqs", mostTrialRequests, "the checks of a deployment's trial send up to 128 requests at once."],
  ["sglang", "max_queued_requests", mostTrialRequests, "the checks of a deployment's trial send up to 128 requests at once."]
]

describe("a flag that would fail every trial is refused before the trial, with the reason", () => {
  it.each(cases)("%s %s", (runtime, flag, least, why) => {
    const issue = (value: number) => (engineFor(runtime) ?? assert.fail()).flagIssue({ [flag]: value })
    assert.isNull(issue(least))
    for (const less of [least - 1, 1, 0]) assert.include(issue(less)?.message, why)
  })
})
