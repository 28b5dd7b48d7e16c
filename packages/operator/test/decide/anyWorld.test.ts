import { assert, describe, it } from "@effect/vitest"
import { canEnter, isFinished, type Phase, workingPhases } from "@seatrial/domain"
import type { Run, RunRevision } from "@seatrial/store"
import { Schema } from "effect"
import { decide } from "../../src/decide/decide.ts"
import { isIdle, isServed } from "../../src/decide/idle.ts"
import { nodePatience } from "../../src/decide/limits.ts"
import { FetchSeen, type Observation, type PodSeen } from "../../src/decide/Observation.ts"
import { benchmark, measured, observed, otherDeployment, pod, podClass, report, revision, run, url } from "../observations.ts"
import { random } from "./world.ts"

const phases: ReadonlyArray<Phase> = [...workingPhases, "activated", "failed", "cancelled"]
const trials = ["checking", "measuring", "benchmarking", "activating", "activated"]

/** Any observation that reading the world may give, each part drawn by itself: also combinations that no orderly course leads to. */
const anyObservation = (draw: () => number): { readonly seen: Observation; readonly now: number } => {
  const chance = (probability: number) => draw() < probability
  const pick = <A>(...all: readonly [A, ...ReadonlyArray<A>]): A => all[Math.floor(draw() * all.length)] ?? all[0]
  const time = () => Math.floor(draw() * 10_000_000)
  const now = 10_000_000
  const phase = phases[Math.floor(draw() * phases.length)] ?? "screening"
  const tried = trials.indexOf(phase)
  const found: RunRevision = {
    ...revision,
    status: phase === "activated" ? pick("active", "draft", "superseded") : chance(0.1) ? "active" : "draft",
    checks: tried > 0 || chance(0.2) ? { ...report, passed: tried > 0 || chance(0.7) } : null,
    measured: tried > 1 || chance(0.2) ? { ...measured, kv_cache_tokens: pick(4_096, 4_096, 100, null) } : null,
    benchmark: tried > 2 || chance(0.2) ? benchmark : null,
    settings: { ...revision.settings, ...(chance(0.4) ? { hold_seconds: pick(0, 60, 3_600) } : {}) }
  }
  const ended = isFinished(phase)
  const reuses = chance(0.25)
  const drawn: Run = {
    ...run,
    phase,
    phaseSince: time(),
    requeues: Math.floor(draw() * 4),
    failure: phase === "failed" ? { code: "does_not_fit", text: "No." } : null,
    serve: chance(0.8),
    endedAt: ended ? time() : null,
    revision: phase === "screening" && chance(0.7) ? null : found,
    modelDeleted: chance(0.15),
    modelDisabled: chance(0.15),
    engineRun: reuses ? otherDeployment : run.id,
    reusedBy: !reuses && chance(0.15) ? [otherDeployment] : [],
    gpuLimit: chance(0.3) ? Math.floor(draw() * 3) : null,
    olderRun: chance(0.15) ? otherDeployment : null,
    replaces: chance(0.1),
    replacedBy: chance(0.1) ? otherDeployment : null,
    lastUsedAt: chance(0.5) ? time() : null,
    endpoints: chance(0.4) ? [{ url: chance(0.8) ? url : "http://127.0.9.9:8000", pod: pod.name, reachable: chance(0.6) }] : [],
    inFlight: chance(0.3) ? 2 : 0
  }
  const started = chance(0.8)
  const ready = started && chance(0.6)
  const present: PodSeen = {
    ...pod,
    createdAt: time(),
    deleting: chance(0.15),
    scheduled: started || chance(0.5),
    unschedulable: chance(0.1) ? { since: time(), message: "0/1 nodes are available." } : null,
    gated: chance(0.05),
    started,
    startedAt: started ? time() : null,
    ready,
    readyChangedAt: chance(0.8) ? time() : null,
    restarts: Math.floor(draw() * 4),
    lastExit: chance(0.3) ? { code: pick(0, 1, 137), reason: pick("Error", "OOMKilled", "Completed") } : null,
    blocked: chance(0.1) ? "ImagePullBackOff" : null,
    lost: chance(0.15) ? "Evicted" : null,
    scheduledAt: chance(0.8) ? time() : null,
    gpuFault: chance(0.15),
    nodeDownSince: chance(0.15) ? time() : null,
    url: ready || chance(0.5) ? url : null
  }
  const failure = { code: "does_not_fit", text: "No." } as const
  const ran = pick("screening", "checking", "measuring", "benchmarking")
  const seen: Observation = {
    ...observed,
    run: drawn,
    resource: chance(0.8) ? { uid: "mdep-1", mirroredPhase: chance(0.7) ? phase : null } : null,
    shownSince: time(),
    keepFinished: chance(0.5) ? Math.floor(draw() * 100_000) : null,
    podClass: chance(0.9) ? { ...podClass, rollout: pick("surge", "replace"), evictable: chance(0.3) } : null,
    fetch: pick<FetchSeen>(
      FetchSeen.Absent(),
      FetchSeen.Active({ obstacle: null, progress: null }),
      FetchSeen.Succeeded(),
      FetchSeen.Leaving(),
      FetchSeen.Failed({ failure })
    ),
    pod: chance(0.7) ? present : null,
    blockedSince: chance(0.2) ? time() : null,
    bootLog: chance(0.3) ? "torch.OutOfMemoryError" : null,
    freeSlots: Math.floor(draw() * 3),
    ahead: Math.floor(draw() * 3),
    setAside: chance(0.2),
    organizationGpus: Math.floor(draw() * 3),
    predecessorHolds: chance(0.2),
    budget: chance(0.3),
    work: {
      running: chance(0.2) ? ran : null,
      ended: chance(0.3) ? { kind: ran, attempts: Math.floor(draw() * 5), at: time(), failure: chance(0.3) ? failure : null, message: "Away." } : null
    },
    withdrawnAt: chance(0.3) ? time() : null,
    attendedSince: chance(0.7) ? 0 : now,
    released: chance(0.3)
  }
  return { seen, now }
}

/** What a decision must never say of what it saw. */
const wrongs = (seen: Observation, now: number): ReadonlyArray<string> => {
  const { actions, lookAgainAt, message, work } = decide(seen, now)
  const { endpoints, phase, requeues } = seen.run
  const wrong: Array<string> = []
  const hold = (holds: boolean, what: string) => {
    if (!holds) wrong.push(`${what} (${phase}: ${message})`)
  }
  hold(message !== "", "says nothing")
  hold(lookAgainAt === null || lookAgainAt > now, "looks again at once")
  hold(work === null || !isFinished(phase), "tries an engine of a run that is over")
  // Of a node that has just fallen silent nobody knows: what gets traffic from it keeps that, and nothing gets any anew.
  const answers = seen.pod !== null && seen.pod.lost === null && !seen.pod.deleting && seen.pod.ready && seen.pod.url !== null
  const healthy = answers && seen.pod?.nodeDownSince === null
  const lost = seen.pod !== null && seen.pod.nodeDownSince !== null && now >= Math.max(seen.pod.nodeDownSince, seen.attendedSince) + nodePatience
  const servesOn = isServed(seen) && seen.run.replacedBy === null && answers && !lost && !isIdle(seen, now)
  const serves = servesOn && healthy
  const entered = actions.filter(({ _tag }) => _tag === "Enter" || _tag === "Activate")
  hold(entered.length <= 1, "goes two ways")
  for (const action of actions) {
    switch (action._tag) {
      case "Enter":
        hold(canEnter(phase, action.to, requeues), `enters ${action.to} after ${requeues} requeues`)
        hold((action.to === "failed") === (action.failure !== null), "fails without a reason, or has one without failing")
        break
      case "Activate":
        hold(!isFinished(phase), "activates a run that is over")
        hold(seen.run.modelDeleted === false, "activates a model that was deleted")
        if (seen.run.serve && seen.run.engineRun === seen.run.id && seen.run.revision?.status !== "active")
          hold(healthy && endpoints.some((endpoint) => endpoint.reachable && endpoint.url === seen.pod?.url), "activates what no gateway reached")
        break
      case "RemovePod":
        hold(!serves, "removes an engine that serves")
        hold(seen.run.engineRun === seen.run.id || !isFinished(phase), "removes the engine of another run after its end")
        hold(action.uid === null || action.uid === seen.pod?.uid, "removes a pod that it has not seen")
        break
      case "Publish":
        hold(!serves || action.endpoints.length > 0, "withdraws an engine that serves")
        hold(
          !(servesOn && endpoints.length === 1 && endpoints[0]?.url === seen.pod?.url) || action.endpoints.length > 0,
          "withdraws what its node's silence may have left"
        )
        hold(action.endpoints.length === 0 || healthy, "publishes an engine that does not answer")
        break
      case "EnsurePod":
        hold(!seen.run.modelDeleted, "starts an engine of a model that was deleted")
        hold(phase !== "failed" && phase !== "cancelled", "starts an engine for a run that is over")
        hold(seen.pod === null, "asks for an engine that is there")
        break
      case "RemoveResource":
        hold(isFinished(phase), "removes the object of a run that is at work")
        hold(seen.run.modelDeleted || seen.run.applied === null, "removes what somebody applied")
        hold(seen.run.modelDeleted || phase !== "activated" || seen.run.revision?.status !== "active", "removes the object of what serves")
        hold(seen.run.modelDeleted || actions.length === 1, "does something else with the object of a run that is over")
        break
      case "Release":
        hold(isFinished(phase) && actions.length === 1, "lets go of a run with something left to do")
        break
      default:
    }
  }
  return wrong
}

/** The cluster, the hub and the gateways do what they should; everything that was asked for happens before the next look. */
const obey = (seen: Observation, now: number): Observation => {
  const { actions, work } = decide(seen, now)
  let next = seen
  for (const action of actions) {
    const { run: current } = next
    switch (action._tag) {
      case "Enter": {
        const requeued = action.to === "queued" && (current.phase === "provisioning" || current.phase === "booting")
        const endedAt = isFinished(action.to) ? now : null
        next = {
          ...next,
          run: { ...current, phase: action.to, phaseSince: now, endedAt, requeues: current.requeues + (requeued ? 1 : 0), failure: action.failure }
        }
        break
      }
      case "Activate": {
        const found =
          current.revision === null
            ? null
            : { ...current.revision, status: current.serve || current.revision.status === "active" ? ("active" as const) : ("draft" as const) }
        next = { ...next, run: { ...current, phase: "activated", phaseSince: now, endedAt: now, revision: found } }
        break
      }
      case "Publish":
        next = { ...next, run: { ...current, endpoints: action.endpoints.map((endpoint) => ({ ...endpoint, reachable: true })) } }
        break
      case "EnsurePod":
        next = { ...next, pod: { ...pod, createdAt: now, startedAt: now, readyChangedAt: now } }
        break
      case "RemovePod":
        next = { ...next, pod: null }
        break
      case "EnsureFetch":
        next = { ...next, fetch: FetchSeen.Succeeded() }
        break
      case "RemoveFetch":
        next = { ...next, fetch: FetchSeen.Absent() }
        break
      case "EnsureResource":
        next = { ...next, resource: { uid: "again", mirroredPhase: null } }
        break
      case "RemoveResource":
        next = { ...next, resource: null }
        break
      case "Release":
        next = { ...next, released: true }
        break
      case "EnsureBudget":
      case "RemoveBudget":
        next = { ...next, budget: action._tag === "EnsureBudget" }
        break
      default:
    }
  }
  const results = { screening: {}, checking: { checks: report }, measuring: { measured }, benchmarking: { benchmark } }
  if (work !== null)
    next = { ...next, run: { ...next.run, revision: { ...(next.run.revision ?? revision), ...results[work] } }, work: { running: null, ended: null } }
  const settled = !actions.some(({ _tag }) => _tag === "Enter" || _tag === "Activate" || _tag === "Publish" || _tag === "RemoveResource")
  if (settled && next.resource !== null) next = { ...next, resource: { ...next.resource, mirroredPhase: next.run.phase } }
  const leaves = next.run.endpoints.length === 0 && next.pod !== null
  return { ...next, withdrawnAt: leaves ? (next.withdrawnAt ?? now) : null }
}

/** Whatever was wrong is over: nodes are up, GPUs are free, nobody goes first, what loads is ready, what leaves is gone. */
const healed = (seen: Observation): Observation => ({
  ...seen,
  podClass: seen.podClass ?? podClass,
  fetch: seen.fetch._tag === "Active" ? FetchSeen.Succeeded() : seen.fetch._tag === "Leaving" ? FetchSeen.Absent() : seen.fetch,
  pod:
    seen.pod === null || seen.pod.deleting
      ? null
      : {
          ...seen.pod,
          scheduled: true,
          gated: false,
          unschedulable: null,
          blocked: null,
          nodeDownSince: null,
          started: true,
          ready: seen.pod.lost === null,
          url
        },
  run: { ...seen.run, olderRun: null, gpuLimit: null, replacedBy: null, inFlight: 0, reusedBy: [] },
  freeSlots: 9,
  ahead: 0,
  setAside: false,
  predecessorHolds: false
})

const most = 60

describe("whatever is seen", () => {
  it.prop(
    "a decision keeps to the phases, touches no engine that serves, and activates nothing that nobody reached",
    [Schema.Int],
    ([seed]) => {
      const draw = random(seed)
      for (let drawn = 0; drawn < 40; drawn++) {
        const { now, seen } = anyObservation(draw)
        assert.strictEqual(wrongs(seen, now).join(), "")
      }
    },
    { arbitrary: { runs: 500 } }
  )

  it.prop(
    `once nothing is wrong any more it comes to rest within ${most} looks, with an engine exactly where one is to serve`,
    [Schema.Int],
    ([seed]) => {
      const drawn = anyObservation(random(seed))
      let { now, seen } = drawn
      let looks = 0
      for (; looks < most; looks++) {
        seen = healed(seen)
        assert.deepStrictEqual(wrongs(seen, now), [])
        const { lookAgainAt } = decide(seen, now)
        const next = obey(seen, now)
        if (JSON.stringify(next) === JSON.stringify(seen)) {
          if (lookAgainAt === null) break
          now = lookAgainAt
        } else now += 1
        seen = next
      }
      assert.isBelow(looks, most, `in ${seen.run.phase}: ${decide(seen, now).message}`)
      const { phase, revision: found } = seen.run
      assert.isTrue(isFinished(phase), phase)
      assert.isFalse(
        found?.status !== "active" && seen.run.endpoints.length > 0 && seen.run.engineRun === seen.run.id,
        "something is published that does not serve"
      )
      if (seen.run.engineRun !== seen.run.id) return
      const wanted = isServed(seen) && !isIdle(seen, now)
      assert.strictEqual(seen.pod !== null, wanted, `${phase}, ${found?.status}`)
      if (wanted) assert.deepStrictEqual([seen.pod?.ready, seen.run.endpoints.length], [true, 1])
      else assert.deepStrictEqual([seen.run.endpoints, seen.fetch._tag], [[], "Absent"])
    },
    { arbitrary: { runs: 500 } }
  )
})
