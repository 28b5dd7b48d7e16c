import { assert, describe, it } from "@effect/vitest"
import type { BoundPod } from "../../src/node/PodObject.ts"
import { type PodFailureRule, podFailure } from "../../src/node/podFailure.ts"

const ended = (name: string, exitCode: number) => ({ name, ready: false, restartCount: 0, state: { terminated: { exitCode } } })
const pod = (status: BoundPod["status"], phase = "Failed"): BoundPod => ({
  metadata: { name: "load-0", namespace: "apps" },
  spec: { containers: [] },
  status: { phase, ...status }
})
const failed = pod({ containerStatuses: [ended("main", 3), ended("side", 0)] })
const onCodes = (operator: string, values: ReadonlyArray<number>, containerName?: string, action = "FailJob"): PodFailureRule => ({
  action,
  onExitCodes: { operator, values, ...(containerName === undefined ? {} : { containerName }) }
})
const disrupted: PodFailureRule = { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget" }] }

describe("a Job's failure policy", () => {
  const cases: ReadonlyArray<readonly [promise: string, rules: ReadonlyArray<PodFailureRule>, pod: BoundPod, expected: "counts" | "ignored" | "final"]> = [
    ["knows a listed exit code", [onCodes("In", [3])], failed, "final"],
    ["lets one that is not listed count", [onCodes("In", [4])], failed, "counts"],
    ["knows one that is not among the listed", [onCodes("NotIn", [4])], failed, "final"],
    ["never takes success for such a code", [onCodes("NotIn", [3])], failed, "counts"],
    ["looks at the named container only", [onCodes("In", [3], "side")], failed, "counts"],
    ["looks at init containers too", [onCodes("In", [3])], pod({ initContainerStatuses: [ended("first", 3)] }), "final"],
    ["says nothing of a pod that has not failed", [onCodes("In", [3])], pod({ containerStatuses: [ended("main", 3)] }, "Running"), "counts"],
    ["ignores a disruption", [disrupted], pod({ conditions: [{ type: "DisruptionTarget", status: "True" }] }), "ignored"],
    ["wants the condition to hold", [disrupted], pod({ conditions: [{ type: "DisruptionTarget", status: "False" }] }), "counts"],
    ["follows the first rule that matches", [onCodes("In", [3], "main", "Count"), onCodes("In", [3])], failed, "counts"],
    ["has nothing to say without rules", [], failed, "counts"]
  ]
  for (const [promise, rules, seen, expected] of cases)
    it(promise, () => {
      const { fatal, ignored } = podFailure(rules, seen)
      assert.strictEqual(fatal !== undefined ? "final" : ignored ? "ignored" : "counts", expected)
    })

  it("names container, pod, code and rule", () => {
    const { fatal } = podFailure([disrupted, onCodes("In", [3])], failed)
    assert.strictEqual(fatal, "Container main for pod apps/load-0 failed with exit code 3 matching FailJob rule at index 1")
  })
})
