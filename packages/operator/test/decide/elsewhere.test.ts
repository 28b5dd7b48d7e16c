import { assert, describe, it } from "@effect/vitest"
import { FailureCode, maxRequeues } from "@seatrial/domain"
import { suiteChecks } from "@seatrial/trial"
import { decide } from "../../src/decide/decide.ts"
import { codes } from "../../src/decide/failedChecks.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { benchmark, deploymentId, failedReport, observationOf, otherDeployment, pod, podClass, run, step, withRevision } from "../observations.ts"
import { words } from "./words.ts"

const garbage = withRevision({ checks: failedReport("text_likelihood", "8.90 nats per token, expected under 5.20") })
const unsteady = withRevision({ checks: failedReport("greedy_repeats", "5 of 16 greedy prompts changed between runs on an idle engine") })
const before = (code: string, at = 1_000) => ({ nodeFaults: [{ node: "node-1", code, at }] })
const later = { phaseSince: 5_000 }
const broken = withRevision({ benchmark: { ...benchmark, steps: [{ ...step, errors: 5 }] } })
const unready = { ...pod, ready: false }
/** An engine that ended twice since the checks began. */
const crashed = { ...unready, restarts: 2, startedAt: 9_000, lastExit: { code: 139, reason: "Error" } }
const failureOf = (observation: Observation, now = 10_000) =>
  decide(observation, now).actions.flatMap((action) => (action._tag === "Enter" && action.failure !== null ? [action.failure] : []))[0]

describe("the cause of a failure", () => {
  const elsewhere = "NoteNodeFault, enter queued"
  const cases: ReadonlyArray<readonly [promise: string, observation: Observation, expected: string]> = [
    ["garbage on one node is tried on another", observationOf("checking", { pod, elsewhere: true }, garbage), elsewhere],
    ["answers that change by themselves too", observationOf("checking", { pod, elsewhere: true }, unsteady), elsewhere],
    ["if there is no other node, the first one decides", observationOf("checking", { pod }, garbage), "keep log, enter failed output_garbage"],
    [
      "on the second node it is the model's",
      observationOf("checking", { pod, elsewhere: true }, { ...garbage, ...before("output_garbage"), ...later }),
      "keep log, enter failed output_garbage"
    ],
    [
      "a fault recorded this time, before a restart of the operator, is not a second node",
      observationOf("checking", { pod, elsewhere: true }, { ...garbage, ...before("output_garbage", 6_000), ...later }),
      elsewhere
    ],
    [
      "a different fault than on the first node is tried again",
      observationOf("checking", { pod, elsewhere: true }, { ...unsteady, ...before("output_garbage"), ...later }),
      elsewhere
    ],
    [
      "but not when it was tried often enough",
      observationOf("checking", { pod, elsewhere: true }, { ...garbage, requeues: maxRequeues }),
      "keep log, enter failed output_garbage"
    ],
    [
      "it may show as an error for a good request",
      observationOf("checking", { pod: { ...pod, gpuFault: true } }, withRevision({ checks: failedReport("usage_exact", "HTTP 500 for a good request") })),
      elsewhere
    ],
    ["and as requests of the benchmark that fail", observationOf("benchmarking", { pod: { ...pod, gpuFault: true } }, broken), elsewhere],
    ["which blame the engine if its GPU is healthy", observationOf("benchmarking", { pod, elsewhere: true }, broken), "keep log, enter failed benchmark_floor"],
    ["a card that failed is to blame before the model", observationOf("checking", { pod: { ...pod, gpuFault: true } }, garbage), elsewhere],
    [
      "if GPUs failed too often the model is not blamed",
      observationOf("checking", { pod: { ...pod, gpuFault: true } }, { ...garbage, requeues: maxRequeues, ...before("gpu_fault"), ...later }),
      "keep log, enter failed node_fault"
    ],
    [
      "the template's fault is the same everywhere",
      observationOf(
        "checking",
        { pod: { ...pod, gpuFault: true }, elsewhere: true },
        withRevision({ checks: failedReport("template_agrees", "3 of 12 conversations") })
      ),
      "keep log, enter failed template_mismatch"
    ],
    [
      "so is a leak between requests",
      observationOf(
        "checking",
        { pod, elsewhere: true },
        withRevision({
          checks: {
            ...failedReport("batch_equals_alone", "cross_request_leak: 2 of 32 answers held another request's code"),
            outcomes: [
              {
                name: "batch_equals_alone",
                class: "required",
                outcome: "failed",
                code: "cross_request_leak",
                detail: "2 of 32 answers held another request's code"
              }
            ]
          }
        })
      ),
      "keep log, enter failed cross_request_leak"
    ],
    [
      "a node that is too slow for the checks is left for another",
      observationOf(
        "checking",
        { pod, elsewhere: true },
        withRevision({
          checks: {
            ...failedReport("template_agrees", "not done within 15 s, while the engine computed"),
            outcomes: [{ name: "template_agrees", class: "required", outcome: "timeout", isComputing: true }]
          }
        })
      ),
      elsewhere
    ],
    ["an engine that ends again and again under the checks is tried elsewhere", observationOf("checking", { pod: crashed, elsewhere: true }, later), elsewhere],
    ["even if it is running again at the moment", observationOf("checking", { pod: { ...crashed, ready: true }, elsewhere: true }, later), elsewhere],
    [
      "on the second node it is the engine's",
      observationOf("benchmarking", { pod: crashed, elsewhere: true }, { ...withRevision({}), ...before("engine_crashed"), ...later }),
      "keep log, enter failed engine_crashed"
    ],
    [
      "an engine that names its cause is not tried again",
      observationOf("checking", { pod: crashed, elsewhere: true, bootLog: "No available memory for the cache blocks" }, later),
      "keep log, enter failed out_of_memory"
    ],
    ["an end before the trial does not count", observationOf("checking", { pod: { ...pod, restarts: 2, startedAt: 4_000 } }, later), "work checking"]
  ]
  for (const [promise, observation, expected] of cases) it(promise, () => assert.strictEqual(words(decide(observation, 10_000)), expected))

  it("the failure of an engine contains a remedy", () => {
    const ended = { ...unready, restarts: 2, startedAt: 9_000 }
    const killed = { ...ended, lastExit: { code: 137, reason: "OOMKilled" } }
    const cases = [
      failureOf(observationOf("provisioning", { pod: { ...unready, started: false } }), 30 * 60_000),
      failureOf(observationOf("booting", { pod: killed }, later)),
      failureOf(observationOf("checking", { pod: killed }, later)),
      failureOf(observationOf("checking", { pod: crashed }, { ...before("engine_crashed"), ...later })),
      failureOf(observationOf("checking", { pod: { ...unready, startedAt: 6_000, readyChangedAt: 6_000 } }, later), 606_000)
    ]
    for (const [at, failure] of cases.entries()) assert.match(failure?.text ?? "", /\b(?:Try|Choose|Ask)\b/, String(at))
  })

  it("a hang is distinguished from a loss by its process, which was running all the time", () => {
    const hangs = observationOf("checking", { pod: { ...unready, startedAt: 1_000, readyChangedAt: 6_000 } }, later)
    assert.strictEqual(failureOf(hangs, 606_000)?.code, "engine_hung")
    const lost = observationOf("checking", { pod: { ...unready, startedAt: 6_000, readyChangedAt: 6_000 } }, later)
    assert.strictEqual(failureOf(lost, 606_000)?.code, "engine_lost")
  })

  it("a slow node is left once, if there is another one and its GPUs are real; then its speed is recorded", () => {
    const slow = withRevision({ benchmark: { ...benchmark, slow: { ratio: 0.5, earlier: 4 } } })
    const real = { ...podClass, hostClass: { ...podClass.hostClass, simulated: false } }
    const on = (change: Partial<Observation>, runChange: object = {}) =>
      words(decide(observationOf("benchmarking", { pod, podClass: real, elsewhere: true, ...change }, { ...slow, ...later, ...runChange }), 10_000))
    assert.strictEqual(on({}), elsewhere)
    assert.strictEqual(on({}, before("node_slow")), "enter activating")
    assert.strictEqual(on({ elsewhere: false }), "enter activating")
    assert.strictEqual(on({ podClass }), "enter activating")
  })

  it("the failure says on how many nodes it was observed, and published endpoints are withdrawn", () => {
    const twice = observationOf("checking", { pod, elsewhere: true }, { ...garbage, ...before("output_garbage"), ...later })
    assert.match(failureOf(twice)?.text ?? "", /^text_likelihood: 8\.90 nats per token, expected under 5\.20\. .* on two nodes\.$/)
    const endpoint = { url: "http://127.0.1.1:8000", pod: pod.name, reachable: false }
    const published = observationOf("activating", { pod: crashed, elsewhere: true }, { ...later, endpoints: [endpoint] })
    assert.strictEqual(words(decide(published, 10_000)), `publish nothing, ${elsewhere}`)
    const ofOther = { ...published, run: { ...published.run, engineRun: otherDeployment } }
    assert.strictEqual(words(decide(ofOther, 10_000)), elsewhere)
    assert.strictEqual(run.id, deploymentId)
  })

  it("each check with a code of its own is in the suite", () => {
    const names = suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null }).map(({ name }) => name)
    assert.deepStrictEqual(
      Object.keys(codes).filter((name) => !names.includes(name)),
      []
    )
  })

  it("the failure names for every check what failed, the evidence, what also failed and the remedy, but no location", () => {
    for (const { name } of suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null })) {
      const first = failedReport(name, "9.1, expected under 5.2")
      const failed = { ...first, outcomes: [...first.outcomes, { name: "needle", class: "required" as const, outcome: "failed" as const }] }
      const failure = failureOf(observationOf("checking", { pod }, withRevision({ checks: failed })))
      assert.match(failure?.text ?? "", new RegExp(`^${name}: 9\\.1, expected under 5\\.2\\. Also failed: needle\\. [A-Z].*\\.$`), name)
      assert.notMatch(failure?.text ?? "", /\d+\.\d+\.\d+|node-|\/models|http/)
      assert.isAtMost(failure?.text.length ?? 501, 500)
    }
  })

  it("no code has two meanings", () => assert.strictEqual(new Set(FailureCode.literals).size, FailureCode.literals.length))
})
