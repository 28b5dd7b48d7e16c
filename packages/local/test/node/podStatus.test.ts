import { assert, describe, it } from "@effect/vitest"
import type { BoundPod } from "../../src/node/PodObject.ts"
import { type ContainerRecord, fresh, type PodFacts, podStatus } from "../../src/node/podStatus.ts"

const pod: BoundPod = { metadata: { name: "p", uid: "u" }, spec: { initContainers: [{ name: "init" }], containers: [{ name: "a" }, { name: "b" }] } }
const ended = (exitCode: number): ContainerRecord => ({ ...fresh, phase: { _tag: "Terminated", terminated: { exitCode } }, over: true })
const running: ContainerRecord = { ...fresh, phase: { _tag: "Running", startedAt: "t" }, started: true }
const ready: ContainerRecord = { ...running, ready: true }
const crashing: ContainerRecord = { ...fresh, phase: { _tag: "Waiting", reason: "CrashLoopBackOff" }, last: { exitCode: 1 }, restartCount: 1 }

const status = (init: ContainerRecord, a: ContainerRecord, b: ContainerRecord, more: Partial<PodFacts> = {}) =>
  podStatus(
    pod,
    {
      podIP: "127.77.0.2",
      hostIP: "127.0.0.1",
      startTime: "t",
      records: new Map([
        ["init", init],
        ["a", a],
        ["b", b]
      ]),
      ...more
    },
    [{ type: "Ready", status: "False", lastTransitionTime: "before" }],
    "now"
  )
const condition = (of: ReturnType<typeof status>, type: string) => of.conditions.find((each) => each.type === type)

describe("podStatus", () => {
  const cases: ReadonlyArray<readonly [promise: string, records: readonly [ContainerRecord, ContainerRecord, ContainerRecord], phase: string]> = [
    ["a pod whose init containers run is pending", [running, fresh, fresh], "Pending"],
    ["a pod is pending until each container has started once", [ended(0), running, fresh], "Pending"],
    ["a pod runs while one container does", [ended(0), running, ended(1)], "Running"],
    ["a container between two runs does not make a pod pending", [ended(0), running, crashing], "Running"],
    ["a pod succeeds when all have ended well", [ended(0), ended(0), ended(0)], "Succeeded"],
    ["a pod fails when one has not", [ended(0), ended(0), ended(2)], "Failed"],
    ["a failed init container fails the pod", [ended(1), fresh, fresh], "Failed"]
  ]
  for (const [promise, [init, a, b], phase] of cases) it(promise, () => assert.strictEqual(status(init, a, b).phase, phase))

  it("a pod is ready when every container is", () => {
    assert.deepInclude(condition(status(ended(0), ready, running), "Ready"), { status: "False", message: "containers with unready status: [b]" })
    assert.deepInclude(condition(status(ended(0), ready, ready), "Ready"), { status: "True" })
  })
  it("a condition keeps its time until it changes", () => {
    assert.strictEqual(condition(status(ended(0), ready, running), "Ready")?.lastTransitionTime, "before")
    assert.strictEqual(condition(status(ended(0), ready, ready), "Ready")?.lastTransitionTime, "now")
  })
  it("a pod that was ended from outside has failed, whatever its containers report, and is not ready", () => {
    const lost = status(ended(0), ready, ready, { failed: { reason: "Terminated", message: "m", disruption: true } })
    assert.deepInclude(lost, { phase: "Failed", reason: "Terminated" })
    assert.deepInclude(condition(lost, "DisruptionTarget"), { status: "True" })
    assert.isFalse(lost.containerStatuses.some((each) => each.ready))
  })
})
