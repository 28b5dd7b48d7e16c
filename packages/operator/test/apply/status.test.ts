import { assert, describe, it } from "@effect/vitest"
import type { Pod } from "@seatrial/kube"
import { queueOf } from "../../src/apply/queueOf.ts"
import { rootCause } from "../../src/apply/rootCause.ts"
import { statusOf } from "../../src/apply/statusOf.ts"
import { transitionEvents } from "../../src/apply/transitionEvents.ts"
import type { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { observed, otherDeployment, pod, podClass, revision, run } from "../observations.ts"

const engine = (status: Pod["status"], role = "engine"): Pod => ({
  metadata: { name: `the-${role}`, labels: { "seatrial.dev/role": role } },
  spec: { nodeName: "node-1", containers: [] },
  ...(status === undefined ? {} : { status })
})
const container = { name: "engine", ready: false, restartCount: 0 }

describe("the root cause", () => {
  const cases: ReadonlyArray<readonly [what: string, pod: Pod, reason: string | undefined, says: RegExp]> = [
    [
      "nothing, of a pod that starts",
      engine({ phase: "Pending", containerStatuses: [{ ...container, state: { waiting: { reason: "ContainerCreating" } } }] }),
      undefined,
      /^$/
    ],
    [
      "nothing, of an engine that loads",
      engine({ phase: "Running", containerStatuses: [{ ...container, started: false, state: { running: {} } }] }),
      undefined,
      /^$/
    ],
    [
      "the scheduler's words",
      engine({
        conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes are available: 3 Insufficient nvidia.com/gpu." }]
      }),
      "Unschedulable",
      /3 Insufficient nvidia.com\/gpu/
    ],
    [
      "an image that cannot be pulled",
      engine({
        containerStatuses: [{ ...container, state: { waiting: { reason: "ImagePullBackOff", message: 'Back-off pulling image "nowhere/engine:1"' } } }]
      }),
      "ImagePullBackOff",
      /nowhere\/engine:1/
    ],
    [
      "a container killed for memory, while it waits to start again",
      engine({
        containerStatuses: [
          { ...container, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } }
        ]
      }),
      "OOMKilled",
      /137/
    ],
    [
      "a container that ended",
      engine({ containerStatuses: [{ ...container, state: { terminated: { exitCode: 1, reason: "Error", message: "secret words" } } }] }),
      "ContainerEnded",
      /exit code 1\.$/
    ],
    [
      "a card that failed, by the driver's line alone",
      engine({
        containerStatuses: [
          { ...container, state: { terminated: { exitCode: 1, message: "words\nNVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\nmore" } } }
        ]
      }),
      "GpuFault",
      /^NVRM: Xid .* bus\.$/
    ],
    [
      "a probe that fails",
      engine({ phase: "Running", containerStatuses: [{ ...container, started: true, state: { running: {} } }] }),
      "NotReady",
      /readiness probe/
    ],
    ["an eviction", engine({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." }), "Evicted", /low on resource/],
    [
      "a drained node",
      engine({ conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "Eviction API: evicting" }] }),
      "EvictionByEvictionAPI",
      /evicting/
    ]
  ]
  for (const [what, seen, reason, says] of cases) {
    it(`is ${what}`, () => {
      const cause = rootCause([seen], false)
      assert.strictEqual(cause?.reason, reason)
      assert.match(cause?.message ?? "", says)
      assert.notInclude(cause?.message ?? "", "secret words")
      if (reason !== undefined) assert.strictEqual(cause?.object, "Pod/the-engine")
    })
  }

  it("is the node's where that does not answer, and the engine's before the download's", () => {
    assert.deepInclude(rootCause([engine({ phase: "Running" })], true), { reason: "NodeNotReady", object: "Node/node-1" })
    const broken = (role: string) => engine({ phase: "Failed", reason: `Of${role}` }, role)
    assert.strictEqual(rootCause([broken("fetch"), broken("engine")], false)?.reason, "Ofengine")
    assert.strictEqual(rootCause([broken("fetch"), engine({ phase: "Running" })], false)?.reason, "Offetch")
  })
})

describe("what a run waits for", () => {
  const of = (change: Partial<typeof run>, rest: Partial<typeof observed> = {}) => queueOf({ ...observed, ...rest, run: { ...run, ...change } }, "words")
  it("is named, with its place", () => {
    assert.deepStrictEqual(of({ phase: "waiting", olderRun: otherDeployment }), { waitsFor: "OlderRun", message: "words" })
    assert.deepStrictEqual(of({ phase: "waiting" }), { waitsFor: "OrganizationLimit", message: "words" })
    assert.deepStrictEqual(of({ phase: "queued" }, { ahead: 2, podClass }), { waitsFor: "Capacity", place: 3, message: "words" })
    assert.deepStrictEqual(of({ phase: "queued" }, { podClass: null }), { waitsFor: "HostClass", message: "words" })
    assert.isUndefined(of({ phase: "booting" }))
  })
})

describe("the status", () => {
  const input = { pod, message: "Serves.", cause: undefined, queue: undefined, generation: 1, before: undefined, now: 1_000 }
  const serving = { ...run, revision: { ...revision, status: "active" as const }, phase: "activated" as const, activeRevisionId: revision.id }
  const applied = (generation: number) => ({ namespace: "seatrial", name: "tiny", current: { uid: "u", generation } })
  const conditionsOf = (status: ReturnType<typeof statusOf>) =>
    (status.conditions ?? []).map(({ observedGeneration, status: holds, type }) => `${type} ${holds} ${observedGeneration}`)

  it("says all four conditions of one generation, and keeps their times while they hold", () => {
    const first = statusOf({ ...input, run: serving })
    assert.deepStrictEqual(conditionsOf(first), ["Accepted True 1", "Ready True 1", "Activated True 1", "Failed False 1"])
    assert.deepStrictEqual(statusOf({ ...input, run: serving, before: first, now: 9_000 }), first)
    const later = statusOf({ ...input, run: serving, before: first, now: 9_000, pod: { ...pod, ready: false } })
    assert.deepStrictEqual(
      (later.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime)),
      [1_000, 9_000, 1_000, 1_000]
    )
  })

  it("does not tell of a changed object what holds for the earlier one", () => {
    const status = statusOf({ ...input, run: { ...serving, applied: applied(1) }, generation: 2 })
    assert.deepStrictEqual(conditionsOf(status), ["Ready True 1", "Activated True 1", "Failed False 1"])
    assert.strictEqual(status.observedGeneration, 1)
  })

  it("names the endpoint while an earlier specification serves, without being ready itself", () => {
    const status = statusOf({
      ...input,
      run: { ...run, phase: "booting", applied: applied(2), activeRevisionId: revision.id },
      generation: 2,
      message: "Boots."
    })
    assert.strictEqual(status.endpoint, "acme/tiny-chat")
    assert.include(conditionsOf(status), "Ready False 2")
    const own = statusOf({ ...input, run: { ...run, phase: "booting", activeRevisionId: revision.id } })
    assert.isUndefined(own.endpoint)
  })

  it("shows what the run waits for, and its cause", () => {
    const cause = { reason: "Unschedulable", message: "0/1 nodes", object: "Pod/x" }
    const queue = { waitsFor: "Capacity" as const, place: 1, message: "first" }
    assert.deepInclude(statusOf({ ...input, run: { ...run, phase: "queued" }, cause, queue }), { cause, queue, deploymentId: run.id, model: "acme/tiny-chat" })
  })
})

describe("events", () => {
  const resource = (status: ModelDeployment["status"]): ModelDeployment => ({
    metadata: { name: "tiny", namespace: "seatrial", uid: "u" },
    spec: { source: { repo: "a/b" } },
    ...(status === undefined ? {} : { status })
  })
  const failed = {
    ...run,
    phase: "failed" as const,
    failure: { code: "image_unavailable", text: "No image." },
    history: [...run.history, { phase: "failed" as const, at: 5, reason: "image_unavailable" }]
  }

  it("tell each transition once, those of an earlier run not counted, and the cause of a failure", () => {
    const told = (status: ModelDeployment["status"]) =>
      transitionEvents(failed, resource(status), { reason: "ErrImagePull", message: "not found", object: "Pod/p" })
    assert.strictEqual(told(undefined).length, 2)
    const phases = [{ phase: "screening" as const, at: "2026-01-01T00:00:00Z" }]
    assert.strictEqual(told({ deploymentId: otherDeployment, phases }).length, 2)
    const [event, ...others] = told({ deploymentId: run.id, phases })
    assert.isEmpty(others)
    assert.deepInclude(event, { type: "Warning", reason: "Failed", message: "image_unavailable: No image. (ErrImagePull of Pod/p: not found)" })
  })
})
