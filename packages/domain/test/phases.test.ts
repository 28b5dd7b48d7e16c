import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  bucketPhases,
  canEnter,
  fallsBack,
  finishedPhases,
  foldV1,
  isFinished,
  isUnplaced,
  maxRequeues,
  mayActivateFrom,
  Phase,
  type Phase as PhaseType,
  phaseTraits,
  toV1Phase,
  workingPhases
} from "../src/index.ts"

describe("phases", () => {
  it.prop("no path leaves a finished phase", [Schema.Literals(finishedPhases), Phase, Schema.Int], ([from, to, requeues]) => !canEnter(from, to, requeues))

  it.prop(
    "any sequence of legal transitions enters each phase once except for at most three requeues, and ends",
    [Schema.Array(Phase).check(Schema.isMaxLength(60))],
    ([wishes]) => {
      let phase: PhaseType = "screening"
      let requeues = 0
      const entered: Array<PhaseType> = [phase]
      for (const target of wishes) {
        if (!canEnter(phase, target, requeues)) continue
        if (fallsBack(phase, target)) requeues++
        phase = target
        entered.push(phase)
      }
      const back = entered.filter((entry, index) => index > 0 && Phase.literals.indexOf(entry) < Phase.literals.indexOf(entered[index - 1] ?? entry))
      return back.length <= maxRequeues && back.every((entry) => entry === "queued") && entered.filter(isFinished).length <= 1
    }
  )

  const cases: ReadonlyArray<readonly [promise: string, from: PhaseType, to: PhaseType, requeues: number, expected: boolean]> = [
    ["cached weights skip the download", "screening", "waiting", 0, true],
    ["free GPUs skip both waits", "materializing", "provisioning", 0, true],
    ["nothing is activated before its benchmark", "measuring", "activated", 0, false],
    ["a candidate that is not served ends after its benchmark", "benchmarking", "activated", 0, true],
    ["a candidate that was verified before ends in screening", "screening", "activated", 0, true],
    ["a lost node returns a boot to the queue", "booting", "queued", 2, true],
    ["the fourth loss does not", "booting", "queued", 3, false],
    ["a fault that needs another node to be confirmed returns to the queue", "benchmarking", "queued", 0, true],
    ["but not without limit", "checking", "queued", 3, false],
    ["a phase that waits does not return", "waiting", "screening", 0, false],
    ["a check is never repeated by going back", "benchmarking", "checking", 0, false],
    ["a phase is not entered from itself", "checking", "checking", 0, false],
    ["every unfinished phase can be canceled", "activating", "cancelled", 0, true]
  ]
  for (const [promise, from, to, requeues, expected] of cases) it(promise, () => assert.strictEqual(canEnter(from, to, requeues), expected))

  it("a run is activated after its trial, and a candidate that need not be tried again or served earlier", () => {
    const from = (serve: boolean, verified: boolean) => Phase.literals.filter((phase) => mayActivateFrom(phase, { serve, verified }))
    assert.deepStrictEqual(from(true, false), ["activating"])
    assert.deepStrictEqual(from(true, true), ["activating"])
    assert.deepStrictEqual(from(false, false), ["benchmarking", "activating"])
    assert.deepStrictEqual(from(false, true), ["screening", "benchmarking", "activating"])
  })

  it("repeated names of the /v1 family are merged into the first", () => {
    const history = [...workingPhases, "activated" as const].map((phase, at) => ({ phase, at }))
    assert.deepStrictEqual(
      foldV1(history).map(({ phase }) => phase),
      ["screening", "ingesting", "probing", "staging", "checking", "activating", "activated"]
    )
    assert.strictEqual(
      foldV1(history).find(({ phase }) => phase === "staging")?.at,
      history.findIndex(({ phase }) => phase === "provisioning")
    )
  })

  it("each phase is in exactly one bucket of the list filter", () => {
    for (const phase of Phase.literals) assert.strictEqual(Object.values(bucketPhases).filter((phases) => phases.includes(phase)).length, 1, phase)
    assert.strictEqual(toV1Phase("queued"), "probing")
  })

  it("an unfinished run either holds GPUs or is unplaced, and its engine runs only on GPUs", () => {
    for (const phase of workingPhases) {
      const { awaitsGpus, engineRuns, holdsGpus } = phaseTraits[phase]
      assert.notStrictEqual(isUnplaced(phase), holdsGpus, phase)
      assert.isFalse(engineRuns && !holdsGpus, phase)
      assert.isFalse(awaitsGpus && holdsGpus, phase)
    }
    for (const phase of finishedPhases) assert.isFalse(isUnplaced(phase), phase)
  })
})
