import { assert, describe, it } from "@effect/vitest"
import type { StoredDecision } from "@seatrial/store"
import { Effect, Stream } from "effect"
import { decide } from "../../src/decide/decide.ts"
import { evidenceToMoveBack } from "../../src/limits.ts"
import { noAnswers } from "../../src/observation/ObservedMove.ts"
import { deltaOf, type Members } from "../../src/record/delta.ts"
import { passesOf } from "../../src/record/history.ts"
import { toRecord } from "../../src/record/RecordedObservation.ts"
import { replay } from "../../src/record/replay.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { deploymentId, observationOf, otherDeployment, pod, revision } from "../observations.ts"

const observation = observationOf("queued", { freeSlots: 1 })
const decidedAt = 5_000
const decision = decide(observation, decidedAt)
const recorded = toRecord(observation)

describe("deciding again", () => {
  const cases: ReadonlyArray<readonly [what: string, change: Members, parts: ReadonlyArray<string> | null]> = [
    ["nothing if only sentences differ", { message: "Other words.", actions: decision.actions.map((action) => ({ ...action, reason: "Other words." })) }, null],
    ["another rule", { rule: "queued.other" }, ["rule"]],
    ["another action", { actions: [] }, ["actions"]],
    ["another member of an action", { actions: decision.actions.map((action) => ({ ...action, to: "failed" })) }, ["actions"]],
    ["other work", { work: "boot" }, ["work"]],
    ["another time of the next pass", { requeueAt: 1 }, ["requeueAt"]]
  ]
  for (const [what, change, parts] of cases) {
    it(`reports ${what}`, () => {
      const result = replay({ observation: recorded, decision: { ...decision, ...change }, decidedAt })
      assert.deepStrictEqual(result._tag === "Differs" ? result.parts : result._tag, parts ?? "Same")
    })
  }

  it("ignores the words of a return to the earlier revision", () => {
    const move = { to: revision.id, own: noAnswers, earlier: noAnswers, evidence: evidenceToMoveBack, startingMillis: 0 }
    const moving = observationOf("activated", { move }, { revision: { ...revision, status: "active" } })
    const { actions, ...rest } = decide(moving, decidedAt)
    assert.strictEqual(actions.filter(({ _tag }) => _tag === "MoveBack").length, 1)
    const reworded = { ...rest, actions: actions.map((action) => (action._tag === "MoveBack" ? { ...action, reason: "Other words." } : action)) }
    assert.strictEqual(replay({ observation: toRecord(moving), decision: reworded, decidedAt })._tag, "Same")
  })

  it("reads the one engine that earlier versions recorded, and reports other engines", () => {
    const name = enginePodName(deploymentId, 1)
    const other = { ...pod, name, uid: "pod-2", url: "http://127.0.1.2:8000" }
    const blank = {
      admission: null,
      elsewhere: false,
      outdated: false,
      sameStart: false,
      withdrawnAt: null,
      requests: null,
      work: { running: null, ended: null }
    }
    const engines = [{ ...blank, ordinal: 1, pod: other, boot: { boot: "pod-2 0", failures: 0, verdict: null } }]
    const endpoints = [{ pod: pod.name, url: pod.url ?? "", reachable: true }]
    const comparing = observationOf("activated", { pod, engines }, { revision: { ...revision, status: "active" }, replicas: 2, endpoints })
    const { engines: compared, ...rest } = decide(comparing, decidedAt)
    assert.deepStrictEqual([rest.work, compared], ["boot", [1]])
    const again = (change: object) => {
      const result = replay({ observation: toRecord(comparing), decision: { ...rest, ...change }, decidedAt })
      return result._tag === "Differs" ? result.parts : result._tag
    }
    assert.deepStrictEqual(
      [again({ engines: [1] }), again({ ordinal: 1 }), again({}), again({ engines: [1, 2] }), again({ ordinal: 2 })],
      ["Same", "Same", ["work"], ["work"], ["work"]]
    )
  })

  it("does not guess what it cannot read", () => {
    assert.deepStrictEqual(
      [
        replay({ observation: null, decision, decidedAt })._tag,
        replay({ observation: { ...recorded, pod: "?" }, decision, decidedAt })._tag,
        replay({ observation: recorded, decision: { rule: 1 }, decidedAt })._tag
      ],
      ["Unreadable", "Unreadable", "Unreadable"]
    )
  })
})

describe("the history of decisions", () => {
  const rowOf = (seq: number, content: unknown, change: Partial<StoredDecision> = {}): StoredDecision => ({
    deploymentId,
    term: 1,
    series: 1,
    seq,
    at: 0,
    decidedAt,
    build: "1",
    rule: "queued",
    observation: content,
    decision,
    ...change
  })
  const later = toRecord(observationOf("queued", { freeSlots: 2 }))
  const delta = deltaOf(recorded, later)
  const slots = (rows: ReadonlyArray<StoredDecision>) =>
    Effect.map(Stream.runCollect(passesOf(Stream.fromIterable(rows))), (passes) => passes.map(({ observation: whole }) => whole?.freeSlots ?? null))

  it.effect("has the whole observation of each decision", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* slots([rowOf(0, recorded), rowOf(1, delta), rowOf(0, recorded, { series: 2 })]), [1, 2, 1])
    })
  )

  it.effect("takes no changes from another series, term or run, and none after a lost record", () =>
    Effect.gen(function* () {
      const first = rowOf(0, recorded)
      const strangers = [rowOf(2, delta), rowOf(1, delta, { series: 2 }), rowOf(1, delta, { term: 2 }), rowOf(1, delta, { deploymentId: otherDeployment })]
      for (const stranger of strangers) assert.deepStrictEqual(yield* slots([first, stranger, { ...stranger, seq: stranger.seq + 1 }]), [1, null, null])
    })
  )
})
