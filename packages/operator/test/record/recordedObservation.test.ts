import { assert, describe, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import { decide } from "../../src/decide/decide.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { applyDelta, Delta, deltaOf, type Members } from "../../src/record/delta.ts"
import { fromRecord, toRecord } from "../../src/record/RecordedObservation.ts"
import { anyFleet } from "../decide/anyFleet.ts"
import { anyObservation, secret } from "../decide/anyObservation.ts"
import { random } from "../decide/world.ts"
import { optionOn } from "../hostClassOptions.ts"
import { observationOf, podClass, revision } from "../observations.ts"

const Fields = Schema.Record(Schema.String, Schema.Unknown)
/** As Postgres stores and returns it. */
const throughJson = (members: Members): Members => Schema.decodeUnknownSync(Fields)(JSON.parse(JSON.stringify(members)))
const deltaThroughJson = (delta: Delta): Delta => Schema.decodeUnknownSync(Delta)(JSON.parse(JSON.stringify(delta)))

const restored = (observation: Observation): Observation => Option.getOrThrowWith(fromRecord(throughJson(toRecord(observation))), () => new Error("unreadable"))

/** Any observation, with the parts that `anyObservation` does not draw. */
const drawn = (draw: () => number) => {
  const { now, seen } = draw() < 0.3 ? anyFleet(draw) : anyObservation(draw)
  const firstReadings = new Map(draw() < 0.5 ? [] : [[now + 1_000, Math.floor(draw() * now)]])
  const options = draw() < 0.3 && seen.run.revision !== null ? [optionOn("h100", { freeSlots: Math.floor(draw() * 2) }, 2), optionOn("h200")] : []
  const failure = draw() < 0.5 ? null : { code: "weights_missing" as const, text: "No folder." }
  const absent = failure !== null && draw() < 0.5 ? { absent: true as const } : {}
  const copy =
    draw() < 0.7 ? null : { running: false, done: false, endedAt: 5, failures: 1, failure, final: draw() < 0.5, checks: true, progress: null, ...absent }
  return { now, observation: { ...seen, firstReadings, options, pod: seen.pod === null ? null : { ...seen.pod, copy } } }
}

describe("a recorded observation", () => {
  it.prop(
    "leads to the same decision again, whatever was observed",
    [Schema.Int],
    ([seed]) => {
      const draw = random(seed)
      for (let count = 0; count < 20; count++) {
        const { now, observation } = drawn(draw)
        assert.deepStrictEqual(decide(restored(observation), now), decide(observation, now), `seed ${seed}`)
      }
    },
    { arbitrary: { runs: 30 } }
  )

  it.prop(
    "is rebuilt exactly from the whole one and the changes after it",
    [Schema.Int],
    ([seed]) => {
      const draw = random(seed)
      let before = toRecord(drawn(draw).observation)
      let rebuilt = throughJson(before)
      for (let count = 0; count < 20; count++) {
        // Sometimes only a part changes, as between two passes.
        const next = toRecord(drawn(draw).observation)
        const after = draw() < 0.5 ? next : { ...before, pod: next.pod, work: next.work }
        rebuilt = applyDelta(rebuilt, deltaThroughJson(deltaOf(before, after)))
        assert.deepStrictEqual(rebuilt, throughJson(after), `seed ${seed}`)
        before = after
      }
    },
    { arbitrary: { runs: 30 } }
  )

  it("contains no log of an engine, no value of a variable, and no chat template", () => {
    const canary = "canary-5c1d"
    const observation = observationOf(
      "booting",
      { bootLog: `${secret} ${canary} torch.OutOfMemoryError`, podClass: { ...podClass, env: [{ name: "TOKEN", value: canary }] } },
      {
        revision: { ...revision, facts: { ...revision.facts, chat_template: canary } },
        traceparent: canary,
        progress: { phase: "booting", message: canary, queue: null, download: null, at: 0 }
      }
    )
    const text = JSON.stringify(toRecord(observation))
    assert.notInclude(text, canary)
    assert.notInclude(text, secret)
    assert.include(text, `"name":"TOKEN"`)
    assert.include(text, `"startFailure":{"code"`)
  })

  it("of a shape that this version does not know is not read", () => {
    assert.isTrue(Option.isNone(fromRecord({ ...toRecord(observationOf("queued")), pod: "?" })))
  })
})

describe("the changes between observations", () => {
  it("name the changed members only", () => {
    const before = toRecord(observationOf("queued", { freeSlots: 0 }))
    const after = toRecord(observationOf("queued", { freeSlots: 2, ahead: 1 }, { requeues: 1 }))
    assert.deepStrictEqual(deltaOf(before, after), {
      set: [
        [["run", "requeues"], 1],
        [["freeSlots"], 2],
        [["ahead"], 1]
      ],
      unset: []
    })
  })
})
