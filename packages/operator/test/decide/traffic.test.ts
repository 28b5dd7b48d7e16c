import { assert, describe, it } from "@effect/vitest"
import { servingEvents } from "../../src/apply/servingEvents.ts"
import { statusOf } from "../../src/apply/statusOf.ts"
import { decide } from "../../src/decide/decide.ts"
import { whyNoTraffic } from "../../src/decide/traffic.ts"
import { gatewayDeadline } from "../../src/limits.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { observationOf, pod, revision, url } from "../observations.ts"

const serving = { revision: { ...revision, status: "active" as const } }
const served = (endpoints: Observation["run"]["endpoints"], change: Partial<Observation> = {}) =>
  observationOf("activated", { pod, ...change }, { ...serving, endpoints })
const endpoint = { url, pod: pod.name, reachable: false }
const unreached = served([endpoint])
const reached = served([{ ...endpoint, reachable: true }])

const statusAt = (observation: Observation, now: number) =>
  statusOf({
    run: observation.run,
    pod: observation.pod,
    message: decide(observation, now).message,
    cause: undefined,
    queue: null,
    download: null,
    generation: 1,
    before: undefined,
    withheld: whyNoTraffic(observation, now),
    now
  })
const readyAt = (observation: Observation, now: number) => statusAt(observation, now).conditions?.find(({ type }) => type === "Ready")

describe("an engine with a ready pod", () => {
  it("is Ready only after a gateway has reached it", () => {
    assert.deepInclude(readyAt(unreached, 0), { status: "False", reason: "EngineNotReady", message: "The model waits until a gateway has reached the engine." })
    assert.deepInclude(readyAt(reached, 0), { status: "True", reason: "Serving" })
    assert.deepInclude(readyAt(served([]), 0), { status: "False", reason: "EngineNotReady" })
    // The endpoint of an earlier pod, or of another port of this one, proves nothing.
    for (const other of [{ pod: "earlier" }, { url: "http://127.0.1.1:15090" }])
      assert.deepInclude(readyAt(served([{ ...endpoint, reachable: true, ...other }]), 0), { status: "False" })
  })

  it("is reported with another reason and an event if no gateway reaches it in time, at the time at which that changes", () => {
    assert.strictEqual(decide(unreached, 0).requeueAt, gatewayDeadline)
    const late = statusAt(unreached, gatewayDeadline)
    assert.deepInclude(readyAt(unreached, gatewayDeadline), { status: "False", reason: "GatewayUnreachable" })
    assert.include(late.message, url)
    assert.notInclude(decide(unreached, gatewayDeadline).publicMessage, url)
    const [event] = servingEvents({
      run: unreached.run,
      resource: { metadata: { name: "tiny", namespace: "seatrial" }, spec: { source: { repo: "a/b" } }, status: statusAt(unreached, 0) },
      status: late,
      pod,
      now: gatewayDeadline
    })
    assert.deepInclude(event, { type: "Warning", reason: "GatewayUnreachable" })
  })
})

describe("an engine whose pod is not ready because of a container that something else added", () => {
  const blocked = { ...pod, ready: false, unreadySidecar: "istio-proxy" }
  const deadline = 600_000

  it("fails the run at the deadline of a start, and does not blame engine or model", () => {
    for (const phase of ["booting", "checking", "benchmarking"] as const) {
      const decision = decide(observationOf(phase, { pod: blocked }, { revision }), deadline)
      assert.match(decision.message, /^container_blocked: The engine is ready, but a container that the cluster added/, phase)
    }
  })

  it("is named to the administrator, and not to callers", () => {
    const decision = decide(served([], { pod: blocked }), 0)
    assert.include(decision.message, "istio-proxy")
    assert.notInclude(decision.publicMessage, "istio-proxy")
  })
})
