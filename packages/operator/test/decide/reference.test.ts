import { assert, describe, it } from "@effect/vitest"
import type { Phase } from "@seatrial/domain"
import { Action } from "../../src/decide/Decision.ts"
import { decide } from "../../src/decide/decide.ts"
import { referenceAgain, referencePlacement, trialAttempts } from "../../src/limits.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { missingCode, ObservedReference } from "../../src/observation/ObservedReference.ts"
import type { WorkEnded, WorkState } from "../../src/observation/work.ts"
import { observationOf, pod, podClass, withRevision } from "../observations.ts"

const job = { image: null, python: "python3", cpu: 4, memoryBytes: 2 ** 34, waitSeconds: 600, nodeSelector: {}, tolerations: [] }
const limit = 600_000
/** The checks of the engine are done. */
const held = { heldSince: 1_000 } as const

const ended: WorkEnded = { kind: "preparation", about: "0", attempts: 1, at: 1_000, failure: null, message: "The hub is away.", byRepository: false }
const after = (change: Partial<WorkEnded>): WorkState => ({ running: null, ended: { ...ended, ...change } })

const runIn = (phase: Phase, reference: ObservedReference, change: Partial<Observation> = {}) =>
  observationOf(
    phase,
    { reference, podClass: { ...podClass, referenceJob: job }, ...(phase === "checking" ? { pod } : {}), ...change },
    withRevision({ engineImage: pod.image })
  )

const { Absent, Active, Ended, Leaving, Settled, Unplaced, Waiting } = ObservedReference
const keep = Action.KeepReference({ pod: "reference-1-x", code: null })
const tagsOf = ({ actions }: { readonly actions: ReadonlyArray<Action> }) => actions.map(({ _tag }) => _tag)

describe("the reference of a commit", () => {
  const cases: ReadonlyArray<
    readonly [
      what: string,
      observation: Observation,
      now: number,
      expected: { readonly work: string | null; readonly requeueAt?: number | null; readonly first?: string }
    ]
  > = [
    ["is prepared while the run waits for GPUs", runIn("queued", Absent(), { freeSlots: 0 }), 0, { work: "preparation" }],
    ["is prepared while the engine is scheduled", runIn("provisioning", Absent()), 0, { work: "preparation" }],
    ["is prepared while the engine starts", runIn("booting", Absent(), { pod: { ...pod, ready: false } }), 0, { work: "preparation" }],
    ["is not prepared before the weights are complete", runIn("materializing", Absent()), 0, { work: null }],
    ["is not prepared if nothing is to do", runIn("provisioning", Settled({ code: "quantized" })), 0, { work: null }],
    ["is prepared again after a pause", runIn("queued", Absent(), { freeSlots: 0, work: after({}) }), 1_500, { work: null, requeueAt: 2_000 }],
    ["is prepared again at its time", runIn("queued", Absent(), { freeSlots: 0, work: after({}) }), 2_000, { work: "preparation" }],
    ["is given up after some attempts", runIn("queued", Absent(), { freeSlots: 0, work: after({ attempts: trialAttempts }) }), 1e6, { work: null }],
    ["is prepared before the checks if that was not possible earlier", runIn("checking", Absent()), 1, { work: "preparation" }],
    ["does not delay the checks while it is computed", runIn("checking", Active()), 1, { work: "checking" }],
    [
      "does not delay the checks if it cannot be prepared",
      runIn("checking", Absent(), { work: after({ attempts: trialAttempts }) }),
      1e5,
      { work: "checking" }
    ],
    ["does not interrupt checks", runIn("checking", Absent(), { work: { running: "checking", ended: null } }), 1, { work: "checking" }],
    ["does not reset the attempts of checks", runIn("checking", Absent(), { work: after({ kind: "checking" }) }), 1e5, { work: "checking" }],
    ["is awaited after the checks", runIn("checking", Active(), held), 1_001, { work: null, requeueAt: 1_000 + limit }],
    ["is awaited while its Job is deleted, after which it is known", runIn("checking", Leaving(), held), 1_001, { work: null, requeueAt: 1_000 + limit }],
    [
      "is awaited until it is stored",
      runIn("checking", Ended({ pod: "reference-1-x", code: null }), held),
      1_001,
      { work: null, requeueAt: 1_001 + referenceAgain, first: "KeepReference" }
    ],
    ["is compared when it is stored", runIn("checking", Settled({ code: null }), held), 1_001, { work: "comparing" }],
    ["is not awaited longer than the class allows", runIn("checking", Active(), held), 1_000 + limit, { work: "comparing" }],
    [
      "is not awaited if the class allows no time",
      runIn("checking", Active(), { ...held, podClass: { ...podClass, referenceJob: { ...job, waitSeconds: 0 } } }),
      1_001,
      { work: "comparing" }
    ],
    ["is not awaited if it is known that there is none", runIn("checking", Settled({ code: "out_of_memory" }), held), 1_001, { work: "comparing" }],
    [
      "is not awaited if its Job failed",
      runIn("checking", Ended({ pod: null, code: "out_of_memory" }), held),
      1_001,
      { work: "comparing", first: "KeepReference" }
    ],
    ["is not awaited without an engine", runIn("checking", Active(), { ...held, pod: null }), 1_001, { work: null, first: "EnsurePod" }],
    ["is stored in any phase", runIn("activated", Ended({ pod: "reference-1-x", code: null })), 1, { work: null, first: "KeepReference" }],
    ["is not prepared before its turn", runIn("queued", Waiting(), { freeSlots: 0 }), 0, { work: null, requeueAt: null }],
    ["does not delay the checks before its turn", runIn("checking", Waiting()), 1, { work: "checking" }],
    ["is not awaited before its turn", runIn("checking", Waiting(), held), 1_000, { work: "comparing" }],
    ["is awaited for a moment if its pod has no node", runIn("checking", Unplaced(), held), 1_001, { work: null, requeueAt: 1_000 + referencePlacement }],
    ["is not awaited longer if its pod has no node", runIn("checking", Unplaced(), held), 1_000 + referencePlacement, { work: "comparing" }],
    [
      "is not awaited at all if the class allows no time, and its pod has no node",
      runIn("checking", Unplaced(), { ...held, podClass: { ...podClass, referenceJob: { ...job, waitSeconds: 0 } } }),
      1_000,
      { work: "comparing" }
    ]
  ]
  for (const [what, observation, now, { first, requeueAt, work }] of cases) {
    it(what, () => {
      const decision = decide(observation, now)
      assert.strictEqual(decision.work, work)
      if (requeueAt !== undefined) assert.strictEqual(decision.requeueAt, requeueAt)
      if (first === undefined) assert.notIncludeMembers(tagsOf(decision), ["KeepReference"])
      else assert.strictEqual(tagsOf(decision)[0], first)
    })
  }

  it("is stored with what its pod printed", () => assert.deepInclude(decide(runIn("booting", Ended({ pod: "reference-1-x", code: null })), 0).actions, keep))

  it("keeps its run from being released until its Job is handled", () => {
    const gone = { resource: null, released: false } as const
    const released = tagsOf(decide(runIn("cancelled", Settled({ code: null }), gone), 1))
    assert.deepStrictEqual(released, ["Release"])
    assert.notInclude(tagsOf(decide(runIn("cancelled", Ended({ pod: null, code: "timed_out" }), gone), 1)), "Release")
  })

  it("is missing with a code that says how far it came", () => {
    const codes: ReadonlyArray<readonly [ObservedReference, string | null]> = [
      [Settled({ code: null }), null],
      [Settled({ code: "quantized" }), "quantized"],
      [Absent(), "not_started"],
      [Waiting(), "not_started"],
      [Unplaced(), "not_started"],
      [Active(), "still_computing"],
      [Leaving(), "still_computing"],
      [Ended({ pod: null, code: "timed_out" }), "timed_out"]
    ]
    for (const [reference, code] of codes) assert.strictEqual(missingCode(reference), code)
  })
})
