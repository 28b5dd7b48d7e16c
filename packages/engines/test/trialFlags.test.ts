import { assert, describe, it } from "@effect/vitest"
import { checkedTopTokens, mostTrialRequests, type Runtime, type ServingSettings } from "@seatrial/domain"
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

describe("a trial counts only draws and penalties that the engine and its flags leave independent and exact", () => {
  const offers = (engine_flags: NonNullable<ServingSettings["engine_flags"]>, simulated = false) =>
    (engineFor("sglang") ?? assert.fail()).offers(
      { runtime: "sglang", host_class: "h100", max_context: 4_096, kv_cache_dtype: "auto", engine_flags },
      simulated
    )

  it("SGLang's overlap scheduler applies penalties late", () => {
    assert.isTrue(offers({}).latePenalties)
    assert.isUndefined(offers({ disable_overlap_schedule: true }).latePenalties)
    assert.isUndefined(offers({}, true).latePenalties)
  })

  it("SGLang loses the counts of penalties when it preempts a request", () => {
    assert.isTrue(offers({}).forgetsPenalties)
    assert.isUndefined(offers({}, true).forgetsPenalties)
  })

  it("SGLang's deterministic mode has one seed for all requests without a seed", () => {
    assert.isTrue(offers({ enable_deterministic_inference: true }).fixedUnseeded)
    assert.isUndefined(offers({}).fixedUnseeded)
  })
})
