import { assert, describe, it } from "@effect/vitest"
import { servingEvents } from "../../src/apply/servingEvents.ts"
import { statusOf } from "../../src/apply/statusOf.ts"
import type { ModelDeploymentStatus } from "../../src/resources/ModelDeployment.ts"
import { otherDeployment, pod, revision, run } from "../observations.ts"

const serving = { ...run, revision: { ...revision, status: "active" as const }, phase: "activated" as const, activeRevisionId: revision.id }
const input = { run: serving, cause: undefined, queue: null, download: null, generation: 1, before: undefined, now: 0, message: "Serves." }
const served = statusOf({ ...input, pod })
const away = statusOf({ ...input, pod: { ...pod, ready: false }, message: "The engine is not ready: It loads the model." })

const events = (shown: ModelDeploymentStatus | undefined, status: ModelDeploymentStatus, now = 0, engine = pod, of = serving) =>
  servingEvents({
    run: of,
    resource: { metadata: { name: "tiny", namespace: "seatrial" }, spec: { source: { repo: "a/b" } }, ...(shown === undefined ? {} : { status: shown }) },
    status,
    pod: engine,
    now
  })

describe("a serving revision", () => {
  it("records a warning with the cause when it becomes unavailable, and an event when it serves again", () => {
    const cause = { reason: "OOMKilled", message: "It was killed.", object: "Pod/p" }
    const [gone, ...others] = events(served, { ...away, cause })
    assert.isEmpty(others)
    assert.deepInclude(gone, {
      type: "Warning",
      reason: "EngineNotReady",
      action: "Serve",
      note: "The engine is not ready: It loads the model. (Pod/p, OOMKilled: It was killed.)"
    })
    assert.deepInclude(events(away, served)[0], { type: "Normal", reason: "Serving" })
  })

  it("records no warning while engines of an earlier revision answer, and one when they are gone too", () => {
    const moving = { ...serving, earlier: 3 }
    const restarts = statusOf({ ...input, run: moving, pod: { ...pod, ready: false }, message: away.message ?? "" })
    assert.isEmpty(events(served, restarts, 0, pod, moving))
    assert.deepInclude(events(restarts, away)[0], { type: "Warning", reason: "EngineNotReady" })
    assert.isEmpty(events(restarts, served))
  })

  it("records a warning if the model has stopped halfway to it, once", () => {
    const stopped = statusOf({ ...input, pod, stopped: "It waits for a GPU. Free one." })
    assert.deepInclude(events(served, stopped)[0], { type: "Warning", reason: "MoveStopped", action: "Serve", note: "It waits for a GPU. Free one." })
    assert.isEmpty(events(stopped, stopped))
    assert.isEmpty(events(stopped, served))
  })

  it("says that a new pod was created if the previous one is gone", () => {
    const [gone] = events(served, away, 9_000, { ...pod, ready: false, createdAt: 5_000 })
    assert.match(gone?.note ?? "", /^The engine's pod was deleted, and a new one was created\./)
  })

  it("records another event if its host class is gone, without which it does not return", () => {
    const classless = statusOf({ ...input, pod: null, classGone: true, message: "The host class local does not exist now." })
    assert.deepInclude(events(away, classless)[0], { type: "Warning", reason: "HostClassMissing", note: "The host class local does not exist now." })
    assert.deepInclude(events(classless, served)[0], { type: "Normal", reason: "Serving" })
  })

  it("is not ready, with an event, if its answers differ from the verified ones and it gets no traffic", () => {
    const withheld = statusOf({ ...input, pod, withheld: "AnswersDiffer", message: "The engine answers otherwise. It gets no traffic." })
    const ready = withheld.conditions?.find(({ type }) => type === "Ready")
    assert.deepInclude(ready, { status: "False", reason: "AnswersDiffer", message: "The engine answers otherwise. It gets no traffic." })
    assert.deepInclude(events(served, withheld)[0], { type: "Warning", reason: "AnswersDiffer", note: "The engine answers otherwise. It gets no traffic." })
    // Before that it was not ready: it had ended or was being compared.
    assert.deepInclude(events(away, withheld)[0], { type: "Warning", reason: "AnswersDiffer" })
    assert.isEmpty(events(withheld, away))
    assert.deepInclude(events(withheld, served)[0], { type: "Normal", reason: "Serving" })
    // Once the engine is gone, that is the reason.
    const gone = statusOf({ ...input, pod: { ...pod, ready: false }, withheld: null })
    assert.deepInclude(
      gone.conditions?.find(({ type }) => type === "Ready"),
      { status: "False", reason: "EngineNotReady" }
    )
  })

  it("has at most one event of each kind within a minute, counted in one object", () => {
    const [first, soon, later] = [0, 30_000, 61_000].map((now) => events(served, away, now)[0]?.metadata)
    assert.deepStrictEqual(first, soon)
    assert.strictEqual(first?.name, later?.name)
    assert.notDeepEqual(first?.annotations, later?.annotations)
  })

  it("has no event for what is already shown, intended, or part of another run", () => {
    const idle = statusOf({ ...input, pod: null, idle: true })
    assert.deepStrictEqual(events(away, { ...away, message: "Other words." }), [])
    assert.deepStrictEqual(events(served, idle), [])
    assert.deepStrictEqual(events(undefined, away), [])
    assert.deepStrictEqual(events({ ...served, deploymentId: otherDeployment }, away), [])
    assert.deepStrictEqual(events({ ...away, phase: "booting" }, served), [])
  })
})

describe("a run that serves with another run's engine", () => {
  const reuser = { ...serving, engineRun: otherDeployment }
  it("shows that engine, and when it is unavailable", () => {
    const readyOf = (status: ModelDeploymentStatus) => status.conditions?.find(({ type }) => type === "Ready")
    const well = statusOf({ ...input, run: reuser, pod })
    assert.deepInclude(readyOf(well), { status: "True", reason: "Serving" })
    assert.deepInclude(well, { pod: pod.name, endpoint: "acme/tiny-chat", engineImage: "reference:1" })
    assert.deepInclude(readyOf(statusOf({ ...input, run: reuser, pod: null })), { status: "False", reason: "EngineNotReady" })
  })
})
