import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { decide } from "../../src/decide/decide.ts"
import { stoppedMove } from "../../src/decide/stoppedMove.ts"
import { drainTime, moveInterval } from "../../src/limits.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { noGrowth, type ObservedEngine } from "../../src/observation/ObservedEngine.ts"
import type { ObservedPod } from "../../src/observation/ObservedPod.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import type { PodClass } from "../../src/resources/PodClass.ts"
import { deploymentId, observationOf, pod, podClass, revision } from "../observations.ts"

const urlOf = (ordinal: number) => `http://127.0.1.${ordinal + 1}:8000`
const podOf = (ordinal: number, change: Partial<ObservedPod> = {}): ObservedPod => ({
  ...pod,
  name: enginePodName(deploymentId, ordinal),
  uid: `pod-${ordinal}`,
  url: urlOf(ordinal),
  ...change
})
const blank = { boot: null, admission: null, elsewhere: false, outdated: false, work: { running: null, ended: null }, sameStart: false }
const engine = (ordinal: number, change: Partial<ObservedEngine> = {}): ObservedEngine => ({
  ...blank,
  ordinal,
  pod: podOf(ordinal),
  withdrawnAt: null,
  requests: null,
  ...change
})
const published = (ordinals: ReadonlyArray<number>) =>
  ordinals.map((ordinal) => ({ url: urlOf(ordinal), pod: enginePodName(deploymentId, ordinal), reachable: true }))
const names = (count: number) => Array.from({ length: count }, (_, index) => `newer-${index}`)

interface Move extends Partial<Pick<PodClass, "maxSurge" | "maxUnavailable">> {
  readonly newer?: number
  readonly serving?: ReadonlyArray<number>
  readonly change?: Partial<Observation>
}

const actionsOf = (observation: Observation, now = 0) =>
  decide(observation, now).actions.map((action) =>
    action._tag === "Publish"
      ? `Publish ${action.endpoints.map((endpoint) => endpoint.pod.slice(-1)).join(",")}`
      : action._tag === "RemovePod" || action._tag === "EnsurePod"
        ? `${action._tag} ${action.ordinal ?? 0}`
        : action._tag
  )

/** The earlier revision of a model that is to serve with four engines. */
const earlier = ({ change = {}, newer = 1, serving = [0, 1, 2, 3], ...settings }: Move): Observation => {
  const run: Partial<Run> = { revision: { ...revision, status: "superseded" }, replicas: 4, newer: names(newer), endpoints: published(serving) }
  const placed = { resource: { uid: "r", shownPhase: "activated" }, pod: podOf(0), engines: [1, 2, 3].map((ordinal) => engine(ordinal)) }
  return observationOf("activated", { ...placed, podClass: { ...podClass, ...settings }, ...change }, run)
}

describe("the engines of an earlier revision", () => {
  const cases: ReadonlyArray<readonly [what: string, move: Move, actions: ReadonlyArray<string>]> = [
    ["stay until one of the newer revision serves", { newer: 0 }, []],
    ["leave one by one, the highest first", { newer: 1 }, ["Publish 0,1,2"]],
    ["stay if enough have left", { newer: 1, serving: [0, 1, 2] }, []],
    ["leave together if enough new ones serve", { newer: 3 }, ["Publish 0"]],
    ["all leave if the newer revision serves with the wanted number", { newer: 4 }, ["Publish "]],
    ["may be fewer with maxUnavailable", { newer: 1, maxUnavailable: 1 }, ["Publish 0,1"]],
    ["may be fewer without a surge", { newer: 1, maxSurge: 0 }, ["Publish 0,1"]],
    ["leave before the others if they do not answer", { newer: 2, change: { pod: podOf(0, { ready: false }) } }, ["Publish 1,2"]],
    ["are not replaced", { newer: 0, change: { pod: null } }, ["Publish 1,2,3"]],
    ["give their GPUs to queued runs, also those that leave anyway", { newer: 1, change: { growth: { ...noGrowth, yields: 2 } } }, ["Publish 0,1"]],
    ["give as many as queued runs need", { newer: 1, change: { growth: { ...noGrowth, yields: 3 } } }, ["Publish 0"]],
    ["never leave a model without an engine for a queued run", { newer: 0, change: { growth: { ...noGrowth, yields: 9 } } }, ["Publish 0"]],
    ["stay at their node's silence, for which a good one goes on", { newer: 3, change: { pod: podOf(0, { nodeDownSince: 0 }) } }, ["Publish 1"]]
  ]
  for (const [what, move, actions] of cases) it(what, () => assert.deepStrictEqual(actionsOf(earlier(move)), actions))

  it("keep one if the model is scaled to one, until one of the newer revision serves", () => {
    const scaled = (newer: number, serving: ReadonlyArray<number>) => {
      const observation = earlier({ newer, serving })
      return actionsOf({ ...observation, run: { ...observation.run, replicas: 1 } })
    }
    assert.deepStrictEqual(scaled(0, [0, 1, 2, 3]), ["Publish 0"])
    assert.deepStrictEqual(scaled(0, [0]), [])
    assert.deepStrictEqual(scaled(1, [0]), ["Publish "])
  })

  it("finish their own requests before they are deleted, the first one too", () => {
    const left = (inFlight: number, requests: number) => {
      const engines = [engine(1), engine(2, { withdrawnAt: 0, requests })]
      const observation = earlier({ newer: 3, serving: [1], change: { engines, withdrawnAt: 0 } })
      return { ...observation, run: { ...observation.run, inFlight } }
    }
    assert.deepStrictEqual(actionsOf(left(0, 0), drainTime - 1), [])
    assert.deepStrictEqual(actionsOf(left(1, 2), drainTime), [])
    assert.deepStrictEqual(actionsOf(left(0, 2), drainTime), ["RemovePod 0"])
    assert.deepStrictEqual(actionsOf(left(1, 0), drainTime), ["RemovePod 2"])
  })

  it("are looked at again soon, and say what they wait for", () => {
    const { message, requeueAt, rule } = decide(earlier({ newer: 1, serving: [0, 1, 2] }), 0)
    assert.deepStrictEqual(
      [message, requeueAt, rule],
      ["This earlier revision serves with 3 engines until the new revision has enough engines.", moveInterval, "activated.superseded.retiring"]
    )
  })

  it("have a disruption budget while they serve, and none when they leave together", () => {
    const guarded = (budget: Observation["budget"]) => earlier({ newer: 1, change: { budget, podClass: { ...podClass, evictable: false } } })
    const tags = (observation: Observation) => decide(observation, 0).actions.flatMap(({ _tag }) => (_tag.endsWith("Budget") ? _tag : []))
    assert.deepStrictEqual(tags(guarded("absent")), ["EnsureBudget"])
    assert.deepStrictEqual(tags(guarded("edited")), ["EnsureBudget"])
    assert.deepStrictEqual(tags(guarded("intact")), [])
    const intact = guarded("intact")
    assert.deepStrictEqual(tags({ ...intact, run: { ...intact.run, newer: null } }), ["RemoveBudget"])
  })

  it("leave at once if their organization cannot pay", () => {
    const unpaid = earlier({ newer: 1, change: { funding: { why: "balance", releaseAt: 0 } } })
    assert.deepStrictEqual(actionsOf(unpaid, 1), ["Publish "])
  })
})

describe("the engines of a new revision", () => {
  const move = (serving: number, others: number, room: number, settings: Partial<PodClass> = {}) => {
    const engines = [1, 2, 3].map((ordinal) => engine(ordinal, ordinal < serving ? {} : { pod: null }))
    const run: Partial<Run> = {
      revision: { ...revision, status: "active" },
      replicas: 4,
      earlier: others,
      endpoints: published([0, 1, 2, 3].slice(0, serving))
    }
    const growth = { room, limit: "gpus" as const, yields: 0 }
    return observationOf(
      "activated",
      { resource: { uid: "r", shownPhase: "activated" }, pod: podOf(0), engines, growth, podClass: { ...podClass, ...settings } },
      run
    )
  }

  it("are started as engines of the earlier one leave, however many GPUs are free", () => {
    assert.deepStrictEqual(actionsOf(move(1, 4, 8)), [])
    assert.deepStrictEqual(actionsOf(move(1, 3, 8)), ["EnsurePod 1"])
    assert.deepStrictEqual(actionsOf(move(2, 3, 8, { maxSurge: 2 })), ["EnsurePod 2"])
    assert.deepStrictEqual(actionsOf(move(1, 0, 8)), ["EnsurePod 1", "EnsurePod 2", "EnsurePod 3"])
    assert.deepStrictEqual(actionsOf(move(1, 3, 0)), [])
  })

  it("get a pass at intervals until the earlier revision has left", () => {
    assert.strictEqual(decide(move(4, 1, 0), 0).requeueAt, moveInterval)
    assert.isNull(decide(move(4, 0, 0), 0).requeueAt)
  })

  it("get such passes, and name the earlier revision, if the model is scaled to one", () => {
    const { engines: _, ...observation } = move(1, 2, 0)
    const scaled = { ...observation, engines: [], pod: podOf(0, { ready: false }), run: { ...observation.run, replicas: 1 } }
    const { message, requeueAt } = decide(scaled, 0)
    assert.deepStrictEqual(
      [message, requeueAt],
      ["The engine is not ready: It loads the model. 0 of 1 engine serves. 2 of the earlier revision still serve.", moveInterval]
    )
  })

  it("say that they wait for the earlier revision", () => {
    const { message, requeueAt } = decide(move(1, 4, 8), 0)
    assert.deepStrictEqual(
      [message, requeueAt],
      ["Another engine waits for an engine of the earlier revision to leave. 1 of 4 engines serve. 4 of the earlier revision still serve.", moveInterval]
    )
  })

  const stopped = (serving: number, others: number, settings: Partial<PodClass> = {}, limit: Observation["growth"]["limit"] = "gpus") => {
    const observation = move(serving, others, 0, settings)
    return { ...observation, growth: { ...observation.growth, limit } }
  }
  const text =
    "The move to the new revision has stopped: its next engine waits for free GPUs, and the 3 engines of the earlier revision go on until that engine serves."

  it("say that the move has stopped without a free GPU, and the administrator what to do", () => {
    const { message, publicMessage } = decide(stopped(1, 3), 0)
    const count = `Another engine waits for free GPUs. 1 of 4 engines serve. 3 of the earlier revision still serve. ${text}`
    assert.strictEqual(publicMessage, count)
    assert.strictEqual(message, `${count} Free GPUs of the host class, or set \`maxUnavailable: 1\` on the host class local.`)
    assert.include(stoppedMove(stopped(1, 2, { maxUnavailable: 1 }, "organization"))?.remedy, "Raise the organization's GPU limit, or set `maxUnavailable: 2`")
  })

  const going: ReadonlyArray<readonly [what: string, observation: Observation]> = [
    ["an engine of the earlier revision may leave", stopped(1, 3, { maxUnavailable: 1 })],
    ["more engines serve than wanted", stopped(2, 3)],
    ["the earlier revision has left", stopped(2, 0)],
    ["all engines of the new revision exist", stopped(4, 0)],
    ["a GPU is free", move(1, 3, 1)],
    ["an engine ends whose GPUs are free soon", { ...stopped(1, 3), growth: { ...stopped(1, 3).growth, freeing: true } }],
    [
      "no gateway has reached the engine yet",
      { ...stopped(1, 3), run: { ...stopped(1, 3).run, endpoints: published([0]).map((each) => ({ ...each, reachable: false })) } }
    ],
    ["funds are used up, which has its own message", stopped(1, 3, {}, "funds")]
  ]
  for (const [what, observation] of going) it(`do not say so if ${what}`, () => assert.isNull(stoppedMove(observation)))
})
