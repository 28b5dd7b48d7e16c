import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { decide } from "../../src/decide/decide.ts"
import { evidenceToMoveBack } from "../../src/limits.ts"
import { addInterval, type Comparison, evidenceOf, noComparison } from "../../src/observation/comparison.ts"
import type { ObservedMove } from "../../src/observation/ObservedMove.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { deploymentId, observationOf, pod, podClass, revision } from "../observations.ts"
import { random } from "./world.ts"

const counts = (answered: number, failed: number) => ({ answered, failed })

describe("the evidence that a new revision fails more requests", () => {
  const cases: ReadonlyArray<readonly [what: string, own: readonly [number, number], earlier: readonly [number, number], isEnough: boolean]> = [
    ["it fails 3 of 3, and the earlier one none of 1,000", [0, 3], [1_000, 0], true],
    ["it fails 6 of 6, and the earlier one none of 60", [0, 6], [60, 0], true],
    ["it fails 2 of 2, and the earlier one none of 10,000", [0, 2], [10_000, 0], false],
    ["it fails 1 in 10, and the earlier one 1 in 100", [180, 20], [1_980, 20], true],
    ["both fail 1 in 10", [900, 100], [2_700, 300], false],
    ["the earlier one fails more", [1_000, 0], [900, 100], false],
    ["nothing fails", [100_000, 0], [100_000, 0], false],
    ["the earlier one answers nothing", [0, 100], [0, 0], false]
  ]
  for (const [what, own, earlier, isEnough] of cases)
    it(`is ${isEnough ? "" : "not "}enough if: ${what}`, () =>
      assert.strictEqual(evidenceOf(addInterval(noComparison, counts(...own), counts(...earlier))) >= evidenceToMoveBack, isEnough))

  it("is enough at any time in at most 1 of 10,000 moves between equal revisions", { timeout: 3_600_000 }, () => {
    const moves = Number(process.env.SEATRIAL_EQUAL_MOVES ?? 500)
    const seed = Number(process.env.SEATRIAL_EQUAL_MOVES_SEED ?? 1)
    const draw = random(seed)
    let wrong = 0
    for (let move = 0; move < moves; move++) {
      const rate = draw() * draw() * 0.3
      const answersOf = (requests: number) => {
        const failed = Array.from({ length: requests }, draw).filter((value) => value < rate).length
        return counts(requests - failed, failed)
      }
      let comparison: Comparison = noComparison
      let isWrong = false
      for (let interval = 0; interval < 40 && !isWrong; interval++) {
        // The new revision gets more and more of the requests.
        comparison = addInterval(comparison, answersOf(Math.round(draw() * (1 + interval))), answersOf(Math.round(draw() * (41 - interval))))
        isWrong = evidenceOf(comparison) >= evidenceToMoveBack
      }
      if (isWrong) wrong++
    }
    assert.isAtMost(wrong, Math.floor(moves / 10_000), `seed ${seed}`)
  })
})

describe("a model that moves to a new revision", () => {
  const to = revision.id
  const move: ObservedMove = { to, own: counts(8, 12), earlier: counts(900, 1), evidence: evidenceToMoveBack, startingMillis: 0 }
  const next = (change: Partial<ObservedMove> | null) => {
    const name = enginePodName(deploymentId, 1)
    const other = { boot: null, admission: null, elsewhere: false, outdated: false, work: { running: null, ended: null }, sameStart: false }
    const run: Partial<Run> = {
      revision: { ...revision, status: "active" },
      replicas: 2,
      earlier: 1,
      endpoints: [{ url: pod.url ?? "", pod: pod.name, reachable: true }]
    }
    const engines = [{ ...other, ordinal: 1, pod: { ...pod, name, uid: "second", url: "http://127.0.1.2:8000" }, withdrawnAt: null, requests: null }]
    const shown = { resource: { uid: "r", shownPhase: "activated" }, podClass, engines, move: change === null ? null : { ...move, ...change } }
    return observationOf("activated", shown, run)
  }
  const patience = 2 * podClass.bootDeadlineSeconds * 1_000

  it("returns to the earlier one if the new one fails more requests, and says how many", () => {
    const { actions, message, rule } = decide(next({}), 0)
    const reason = "12 of 20 requests failed on engines of the new revision, and 1 of 901 on engines of the earlier one."
    assert.deepStrictEqual(
      actions.filter(({ _tag }) => _tag === "MoveBack").map((action) => ({ ...action })),
      [{ _tag: "MoveBack", to, reason }]
    )
    assert.deepStrictEqual([message, rule], [`The model returns to its earlier revision. ${reason}`, "activated.movesBack"])
  })

  const stays: ReadonlyArray<readonly [what: string, move: Partial<ObservedMove> | null, back: boolean]> = [
    ["the evidence is weaker", { evidence: evidenceToMoveBack - 0.01 }, false],
    ["it cannot return", null, false],
    ["engines started for as long as two starts take", { evidence: 0, startingMillis: patience }, true],
    ["they may still become ready", { evidence: 0, startingMillis: patience - 1 }, false]
  ]
  for (const [what, change, back] of stays)
    it(`${back ? "returns" : "does not return"} if ${what}`, () =>
      assert.strictEqual(
        decide(next(change), 0).actions.some(({ _tag }) => _tag === "MoveBack"),
        back
      ))
})
