import { assert, describe, it } from "@effect/vitest"
import { fallsBack, isFinished } from "@seatrial/domain"
import { Schema } from "effect"
import { Action, type Decision } from "../../src/decide/Decision.ts"
import { decide } from "../../src/decide/decide.ts"
import { isIdle } from "../../src/decide/idle.ts"
import { isServed } from "../../src/observation/isServed.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import { ObservedReference } from "../../src/observation/ObservedReference.ts"
import { benchmark, measured, pod, podClass, report, revision, url } from "../observations.ts"
import { anyObservation } from "./anyObservation.ts"
import { brokenInvariants } from "./invariants.ts"
import { random } from "./world.ts"

/** Whether an action concerns the run's own objects. The Job of a reference belongs to a commit. */
const isOfRun = ({ _tag }: Action) => _tag !== "KeepReference"

/** Random worlds of each property. */
const runs = Number(process.env.SEATRIAL_WORLDS ?? 200)

/** Texts of the observation that a decision must not contain. */
const wrongs = (observation: Observation, now: number): ReadonlyArray<string> => {
  const decision = decide(observation, now)
  const { actions, requeueAt, message, work } = decision
  const { phase } = observation.run
  const wrong = [...brokenInvariants(observation, now, decision)]
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
        hold(!observation.run.modelDeleted, "starts an engine of a model that was deleted")
        hold(phase !== "failed" && phase !== "cancelled", "starts an engine for a run that is over")
        hold(observation.pod === null, "asks for an engine that is there")
        hold(!isFinished(phase) || observation.merged === "none", "asks for what an adapter is compared with where that is over")
        break
      case "RemoveResource":
        hold(isFinished(phase), "removes the object of a run that is at work")
        hold(observation.run.modelDeleted || observation.run.applied === null, "removes an object that a user applied")
        hold(observation.run.modelDeleted || phase !== "activated" || observation.run.revision?.status !== "active", "removes the object of what serves")
        hold(observation.run.modelDeleted || actions.filter(isOfRun).length === 1, "does something else with the object of a run that is over")
        break
      case "Release":
        hold(isFinished(phase) && actions.length === 1, "lets go of a run with something left to do")
        break
      default:
    }
  }
  return wrong
}

const mergedBefore = { running: false, done: true, endedAt: null, failures: 0, failure: null, final: false }

/** The cluster, the hub and the gateways work correctly. Every request is fulfilled before the next pass. */
const obey = (observation: Observation, now: number): Observation => {
  const { actions, work } = decide(observation, now)
  let next = observation
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
            requeues: current.requeues + (requeued && action.hadNoGpus !== true ? 1 : 0),
            failure: action.failure,
            revision: requeued && current.revision !== null ? { ...current.revision, checks: null, measured: null, benchmark: null } : current.revision
          }
        }
        break
      }
      case "Activate": {
        const problem =
          current.revision === null
            ? null
            : { ...current.revision, status: current.serve || current.revision.status === "active" ? ("active" as const) : ("draft" as const) }
        next = { ...next, run: { ...current, phase: "activated", phaseSince: now, endedAt: now, revision: problem } }
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
      case "KeepReference":
        next = { ...next, reference: ObservedReference.Settled({ code: null }) }
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
        next = { ...next, budget: action._tag === "EnsureBudget" ? "intact" : "absent" }
        break
      default:
    }
  }
  const results = {
    screening: {},
    preparation: {},
    boot: {},
    fidelity: {},
    checking: { checks: report },
    comparing: { checks: report },
    measuring: { measured },
    benchmarking: { benchmark }
  }
  if (work !== null)
    next = { ...next, run: { ...next.run, revision: { ...(next.run.revision ?? revision), ...results[work] } }, work: { running: null, ended: null } }
  if (work === "boot" && next.boot !== null) next = { ...next, boot: { ...next.boot, verdict: { outcome: "same", message: "", failures: 0, at: now } } }
  else if (work === "fidelity") next = { ...next, merged: "answered" }
  else if (work === "checking") next = { ...next, merged: "none" }
  else if (work === "preparation") next = { ...next, reference: ObservedReference.Unplaced() }
  if (observation.reference._tag === "Waiting") next = { ...next, reference: ObservedReference.Absent() }
  if (observation.reference._tag === "Unplaced") next = { ...next, reference: ObservedReference.Active() }
  if (observation.reference._tag === "Active") next = { ...next, reference: ObservedReference.Ended({ pod: "reference-1-x", code: null }) }
  if (observation.reference._tag === "Leaving") next = { ...next, reference: ObservedReference.Absent() }
  const settled = !actions.some(({ _tag }) => _tag === "Enter" || _tag === "Activate" || _tag === "Publish" || _tag === "RemoveResource")
  if (settled && next.resource !== null) next = { ...next, resource: { ...next.resource, shownPhase: next.run.phase } }
  const leaves = next.run.endpoints.length === 0 && next.pod !== null
  return { ...next, withdrawnAt: leaves ? (next.withdrawnAt ?? now) : null }
}

/**
 * All faults are over: nodes are healthy, GPUs are free, no other run is ahead, loading engines are ready, terminating
 * pods are gone, and the organization has funds.
 */
const healed = (observation: Observation): Observation => ({
  ...observation,
  podClass: observation.podClass ?? podClass,
  fetch: observation.fetch._tag === "Active" ? ObservedFetch.Succeeded() : observation.fetch._tag === "Leaving" ? ObservedFetch.Absent() : observation.fetch,
  pod:
    observation.pod === null || observation.pod.deleting
      ? null
      : {
          ...observation.pod,
          scheduled: true,
          gated: false,
          unschedulable: null,
          blocked: null,
          nodeDownSince: null,
          started: true,
          ready: observation.pod.lost === null,
          url
        },
  run: { ...observation.run, olderRun: null, gpuLimit: null, replacedBy: null, inFlight: 0, reusedBy: [], spendLimited: false },
  funding: null,
  freeSlots: 9,
  ahead: 0,
  setAside: false,
  predecessorHolds: false
})

/** Wrong decisions, by the fault and the invariant that it breaks. */
const mutations: Record<string, (observation: Observation, decision: Decision) => Decision> = {
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
        const { now, seen: observation } = anyObservation(draw)
        assert.strictEqual(wrongs(observation, now).join(), "")
      }
    },
    { arbitrary: { runs } }
  )

  for (const [what, spoil] of Object.entries(mutations)) {
    it(`the invariants detect a decision that ${what}`, () => {
      const draw = random(1)
      const problem = new Set<string>()
      for (let drawn = 0; drawn < 5_000; drawn++) {
        const { now, seen: observation } = anyObservation(draw)
        for (const one of brokenInvariants(observation, now, spoil(observation, decide(observation, now)))) problem.add(one.slice(0, 1))
      }
      assert.include([...problem], what.slice(-2, -1))
    })
  }

  it.prop(
    `without further faults it settles within ${most} passes, with an engine exactly if one should serve`,
    [Schema.Int],
    ([seed]) => {
      const drawn = anyObservation(random(seed))
      let { now, seen: observation } = drawn
      let looks = 0
      for (; looks < most; looks++) {
        observation = healed(observation)
        assert.strictEqual(wrongs(observation, now).join(), "")
        const { requeueAt } = decide(observation, now)
        const next = obey(observation, now)
        if (JSON.stringify(next) === JSON.stringify(observation)) {
          if (requeueAt === null) break
          now = requeueAt
        } else now += 1
        observation = next
      }
      assert.isBelow(looks, most, `in ${observation.run.phase}: ${decide(observation, now).message}`)
      const { phase, revision: problem } = observation.run
      assert.isTrue(isFinished(phase), phase)
      assert.isFalse(
        problem?.status !== "active" && observation.run.endpoints.length > 0 && observation.run.engineRun === observation.run.id,
        "something is published that does not serve"
      )
      if (observation.run.engineRun !== observation.run.id) return
      const wanted = isServed(observation) && !isIdle(observation, now)
      assert.strictEqual(observation.pod !== null, wanted, `${phase}, ${problem?.status}`)
      // An engine with different answers waits for a person.
      const waits = observation.boot?.verdict?.outcome === "differs" && observation.run.endpoints.length === 0
      if (wanted) assert.deepStrictEqual([observation.pod?.ready, observation.run.endpoints.length], [true, waits ? 0 : 1])
      else assert.deepStrictEqual([observation.run.endpoints, observation.fetch._tag], [[], "Absent"])
    },
    { arbitrary: { runs } }
  )
})
