import { assert, describe, it } from "@effect/vitest"
import { fallsBack, isFinished } from "@seatrial/domain"
import { Schema } from "effect"
import { Action, type Decision } from "../../src/decide/Decision.ts"
import { decide } from "../../src/decide/decide.ts"
import { isIdle, isServed } from "../../src/decide/idle.ts"
import { type Observation, ObservedFetch } from "../../src/decide/Observation.ts"
import { benchmark, measured, pod, podClass, report, revision, url } from "../observations.ts"
import { anyObservation } from "./anyObservation.ts"
import { violated } from "./invariants.ts"
import { random } from "./world.ts"

/** What a decision must never say of what it saw. */
const wrongs = (seen: Observation, now: number): ReadonlyArray<string> => {
  const decision = decide(seen, now)
  const { actions, requeueAt, message, work } = decision
  const { phase } = seen.run
  const wrong = [...violated(seen, now, decision)]
  const hold = (holds: boolean, what: string) => {
    if (!holds) wrong.push(`${what} (${phase}: ${message})`)
  }
  hold(message !== "", "says nothing")
  hold(requeueAt === null || requeueAt > now, "looks again at once")
  hold(work === null || !isFinished(phase) || work === "boot", "tries an engine of a run that is over")
  const entered = actions.filter(({ _tag }) => _tag === "Enter" || _tag === "Activate")
  hold(entered.length <= 1, "goes two ways")
  for (const action of actions) {
    switch (action._tag) {
      case "Enter":
        hold((action.to === "failed") === (action.failure !== null), "fails without a reason, or has one without failing")
        break
      case "EnsurePod":
        hold(!seen.run.modelDeleted, "starts an engine of a model that was deleted")
        hold(phase !== "failed" && phase !== "cancelled", "starts an engine for a run that is over")
        hold(seen.pod === null, "asks for an engine that is there")
        hold(!isFinished(phase) || seen.merged === "none", "asks for what an adapter is compared with where that is over")
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

const mergedBefore = { running: false, done: true, endedAt: null, failures: 0, failure: null }

/** The cluster, the hub and the gateways do what they should; everything that was asked for happens before the next look. */
const obey = (seen: Observation, now: number): Observation => {
  const { actions, work } = decide(seen, now)
  let next = seen
  for (const action of actions) {
    const { run: current } = next
    switch (action._tag) {
      case "Enter": {
        const requeued = fallsBack(current.phase, action.to)
        const endedAt = isFinished(action.to) ? now : null
        next = {
          ...next,
          run: {
            ...current,
            phase: action.to,
            phaseSince: now,
            endedAt,
            requeues: current.requeues + (requeued ? 1 : 0),
            failure: action.failure,
            revision: requeued && current.revision !== null ? { ...current.revision, checks: null, measured: null, benchmark: null } : current.revision
          }
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
        next = {
          ...next,
          pod: { ...pod, createdAt: now, startedAt: now, readyChangedAt: now, merge: next.merged === "wanted" ? mergedBefore : null },
          boot: next.boot === null ? null : { ...next.boot, verdict: null }
        }
        break
      case "RemovePod":
        next = { ...next, pod: null, boot: next.boot === null ? null : { ...next.boot, verdict: null } }
        break
      case "EnsureFetch":
        next = { ...next, fetch: ObservedFetch.Succeeded() }
        break
      case "RemoveFetch":
        next = { ...next, fetch: ObservedFetch.Absent() }
        break
      case "NoteWeights":
      case "ForgetWeights":
        next = { ...next, weights: action._tag === "NoteWeights" ? { own: true } : null }
        break
      case "NoteNodeFault":
        next = { ...next, run: { ...current, nodeFaults: [...current.nodeFaults, { node: "node-1", code: action.code, at: now }] } }
        break
      case "RecordEngineImage": {
        const { digest, image } = action
        next = { ...next, run: { ...current, revision: { ...(current.revision ?? revision), engineImage: image, engineDigest: digest } } }
        break
      }
      case "EnsureResource":
        next = { ...next, resource: { uid: "again", shownPhase: null } }
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
  const results = { screening: {}, boot: {}, fidelity: {}, checking: { checks: report }, measuring: { measured }, benchmarking: { benchmark } }
  if (work !== null)
    next = { ...next, run: { ...next.run, revision: { ...(next.run.revision ?? revision), ...results[work] } }, work: { running: null, ended: null } }
  if (work === "boot" && next.boot !== null) next = { ...next, boot: { ...next.boot, verdict: { outcome: "same", message: "", failures: 0, at: now } } }
  else if (work === "fidelity") next = { ...next, merged: "answered" }
  else if (work === "checking") next = { ...next, merged: "none" }
  const settled = !actions.some(({ _tag }) => _tag === "Enter" || _tag === "Activate" || _tag === "Publish" || _tag === "RemoveResource")
  if (settled && next.resource !== null) next = { ...next, resource: { ...next.resource, shownPhase: next.run.phase } }
  const leaves = next.run.endpoints.length === 0 && next.pod !== null
  return { ...next, withdrawnAt: leaves ? (next.withdrawnAt ?? now) : null }
}

/** Whatever was wrong is over: nodes are up, GPUs are free, nobody goes first, what loads is ready, what leaves is gone. */
const healed = (seen: Observation): Observation => ({
  ...seen,
  podClass: seen.podClass ?? podClass,
  fetch: seen.fetch._tag === "Active" ? ObservedFetch.Succeeded() : seen.fetch._tag === "Leaving" ? ObservedFetch.Absent() : seen.fetch,
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

/** Decisions that are wrong, by what they do wrong and the invariant that this breaks. */
const spoilt: Record<string, (seen: Observation, decision: Decision) => Decision> = {
  "withdraws what serves (1)": (_, decision) => ({ ...decision, actions: [...decision.actions, Action.Publish({ endpoints: [] })] }),
  "sends a finished run back (2)": (_, decision) => ({
    ...decision,
    actions: [Action.Enter({ to: "queued", reason: "Again.", failure: null, replaces: false })]
  }),
  "answers with the queue's words (3)": ({ admission }, decision) => ({
    ...decision,
    actions: [Action.Enter({ to: "failed", reason: "", failure: { code: "capacity_lost", text: `Gives up: ${admission}` }, replaces: false })]
  }),
  "shows an engine's log (4)": ({ bootLog }, decision) => ({ ...decision, message: `It ended: ${bootLog}` }),
  "takes an engine from under its requests (5)": ({ pod }, decision) => ({
    ...decision,
    actions: [Action.RemovePod({ uid: pod?.uid ?? null, force: false })]
  }),
  "tries before it notes the image (6)": (_, decision) => ({ ...decision, actions: [], work: "checking" })
}

const most = 60

describe("for any observation", () => {
  it.prop(
    "a decision respects each of the six invariants",
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

  for (const [what, spoil] of Object.entries(spoilt)) {
    it(`the invariants detect a decision that ${what}`, () => {
      const draw = random(1)
      const found = new Set<string>()
      for (let drawn = 0; drawn < 5_000; drawn++) {
        const { now, seen } = anyObservation(draw)
        for (const one of violated(seen, now, spoil(seen, decide(seen, now)))) found.add(one.slice(0, 1))
      }
      assert.include([...found], what.slice(-2, -1))
    })
  }

  it.prop(
    `without further faults it settles within ${most} passes, with an engine exactly if one should serve`,
    [Schema.Int],
    ([seed]) => {
      const drawn = anyObservation(random(seed))
      let { now, seen } = drawn
      let looks = 0
      for (; looks < most; looks++) {
        seen = healed(seen)
        assert.deepStrictEqual(wrongs(seen, now), [])
        const { requeueAt } = decide(seen, now)
        const next = obey(seen, now)
        if (JSON.stringify(next) === JSON.stringify(seen)) {
          if (requeueAt === null) break
          now = requeueAt
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
      // What answers otherwise than what was verified waits for somebody.
      const waits = seen.boot?.verdict?.outcome === "differs" && seen.run.endpoints.length === 0
      if (wanted) assert.deepStrictEqual([seen.pod?.ready, seen.run.endpoints.length], [true, waits ? 0 : 1])
      else assert.deepStrictEqual([seen.run.endpoints, seen.fetch._tag], [[], "Absent"])
    },
    { arbitrary: { runs: 500 } }
  )
})
