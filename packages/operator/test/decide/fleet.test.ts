import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Action, type Decision, worksOf } from "../../src/decide/Decision.ts"
import { decide } from "../../src/decide/decide.ts"
import { isGood } from "../../src/decide/fleet.ts"
import { drainTime } from "../../src/limits.ts"
import { engineAlone, enginesOf, firstEngine } from "../../src/observation/engines.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import type { ObservedEngine } from "../../src/observation/ObservedEngine.ts"
import type { ObservedPod } from "../../src/observation/ObservedPod.ts"
import { endedOf } from "../../src/observation/work.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { deploymentId, observationOf, otherDeployment, pod, revision } from "../observations.ts"
import { anyFleet } from "./anyFleet.ts"
import { random } from "./world.ts"

const minute = 60_000
const active = { revision: { ...revision, status: "active" as const } }
const urlOf = (ordinal: number) => `http://127.0.1.${ordinal + 1}:8000`
const podOf = (ordinal: number, change: Partial<ObservedPod> = {}): ObservedPod => ({
  ...pod,
  name: enginePodName(deploymentId, ordinal),
  uid: `pod-${ordinal}`,
  url: urlOf(ordinal),
  ...change
})
const endpointOf = (ordinal: number) => ({ url: urlOf(ordinal), pod: enginePodName(deploymentId, ordinal), reachable: true })
const engine = (ordinal: number, change: Partial<ObservedEngine> = {}): ObservedEngine => ({
  ordinal,
  pod: podOf(ordinal),
  boot: null,
  admission: null,
  elsewhere: false,
  outdated: false,
  work: { running: null, ended: null },
  sameStart: false,
  withdrawnAt: null,
  requests: null,
  ...change
})
const verified = (ordinal: number, outcome: "same" | "differs" | null = "same") => ({
  boot: `pod-${ordinal} 0`,
  failures: outcome === "differs" ? 2 : 0,
  verdict: outcome === null ? null : { outcome, message: "5 of 8 differ.", failures: 0, at: 0 }
})

/** A serving revision with these engines; `published`: the ordinals of those with traffic. */
const fleetOf = (replicas: number, others: ReadonlyArray<ObservedEngine>, published: ReadonlyArray<number>, change: Partial<Observation> = {}): Observation =>
  observationOf(
    "activated",
    { resource: { uid: "r", shownPhase: "activated" }, pod: podOf(0), engines: others, ...change },
    { ...active, replicas, endpoints: published.map(endpointOf) }
  )

const describeAction = (action: Action): string => {
  switch (action._tag) {
    case "Publish":
      return `Publish ${action.endpoints.map((endpoint) => endpoint.pod.slice(-1)).join(",")}`
    case "EnsurePod":
    case "RemovePod":
    case "NoteNodeFault":
      return `${action._tag} ${action.ordinal ?? 0}`
    default:
      return action._tag
  }
}
const acts = (observation: Observation, now = 0) => decide(observation, now).actions.map(describeAction)
const room = (count: number, yields = 0) => ({ room: count, limit: "gpus" as const, yields })

describe("the engines of a serving model", () => {
  const lost = { pod: podOf(1, { lost: "Evicted" }) }
  const absent = { pod: null }
  const cases: ReadonlyArray<readonly [what: string, observation: Observation, actions: ReadonlyArray<string>]> = [
    ["all serve", fleetOf(2, [engine(1)], [0, 1]), []],
    ["get traffic together, with one write", fleetOf(2, [engine(1)], []), ["Publish 0,1"]],
    ["get traffic one by one", fleetOf(2, [engine(1)], [0]), ["Publish 0,1"]],
    ["keep their traffic while another one starts", fleetOf(2, [engine(1, { pod: podOf(1, { ready: false }) })], [0, 1]), ["Publish 0"]],
    ["keep their traffic while the first one starts", fleetOf(2, [engine(1)], [0, 1], { pod: podOf(0, { ready: false }) }), ["Publish 1"]],
    ["keep their traffic while the first one is created again", fleetOf(2, [engine(1)], [0, 1], { pod: null }), ["Publish 1", "EnsurePod 0"]],
    ["are replaced one by one", fleetOf(2, [engine(1, lost)], [0, 1]), ["Publish 0", "RemovePod 1"]],
    ["are created if there is room", fleetOf(3, [engine(1, absent), engine(2, absent)], [0], { growth: room(1) }), ["EnsurePod 1"]],
    ["are not created without room", fleetOf(2, [engine(1, absent)], [0], { growth: room(0) }), []],
    ["lose the endpoint of a pod that is gone", fleetOf(2, [engine(1, absent)], [0, 1], { growth: room(1) }), ["Publish 0", "EnsurePod 1"]],
    ["are withdrawn above the wanted number, the highest first", fleetOf(2, [engine(1), engine(2), engine(3)], [0, 1, 2, 3]), ["Publish 0,1"]],
    ["stay if those that should stay do not serve", fleetOf(1, [engine(1)], [0, 1], { pod: podOf(0, { ready: false }) }), ["Publish 1"]],
    ["stay if the node of the one that should stay does not respond", fleetOf(1, [engine(1)], [0, 1], { pod: podOf(0, { nodeDownSince: 0 }) }), []],
    ["give way to a queued run, the highest first", fleetOf(3, [engine(1), engine(2)], [0, 1, 2], { growth: room(0, 1) }), ["Publish 0,1"]],
    ["never give way with the first one", fleetOf(2, [engine(1)], [0, 1], { growth: room(0, 5) }), ["Publish 0"]],
    [
      "stay above the wanted number if the model would have fewer than it keeps, although a run is queued",
      fleetOf(2, [engine(1, absent), engine(2), engine(3)], [0, 2, 3], { growth: room(0, 1) }),
      ["Publish 0,2"]
    ],
    [
      "stay while the first one has no pod, although a run is queued",
      fleetOf(4, [engine(1), engine(2), engine(3)], [1, 2, 3], { pod: null, growth: room(0, 1) }),
      ["EnsurePod 0"]
    ],
    [
      "give way although another one starts",
      fleetOf(3, [engine(1, { pod: podOf(1, { ready: false }) }), engine(2)], [0, 2], { growth: room(0, 1) }),
      ["Publish 0"]
    ]
  ]
  for (const [what, observation, actions] of cases) it(what, () => assert.deepStrictEqual(acts(observation), actions))

  it("finish their requests before their pods are deleted", () => {
    const withdrawn = (requests: number | null, ready = true) => fleetOf(1, [engine(1, { pod: podOf(1, { ready }), withdrawnAt: 0, requests })], [0])
    assert.deepStrictEqual(acts(withdrawn(0), drainTime - 1), [])
    assert.strictEqual(decide(withdrawn(0), 0).requeueAt, drainTime)
    assert.deepStrictEqual(acts(withdrawn(2), drainTime), [])
    assert.deepStrictEqual(acts(withdrawn(null), drainTime), [])
    assert.deepStrictEqual(acts(withdrawn(0), drainTime), ["RemovePod 1"])
    assert.deepStrictEqual(acts(withdrawn(null, false), drainTime), ["RemovePod 1"])
    assert.deepStrictEqual(acts(withdrawn(2), 61 * minute), ["RemovePod 1"])
  })

  it("get no traffic before each start is compared, all at the same time", () => {
    const uncompared = (change: Partial<ObservedEngine> = {}) =>
      fleetOf(3, [engine(1, { boot: verified(1, null), ...change }), engine(2, { boot: verified(2, null) })], [0], { boot: verified(0) })
    const begins = decide(uncompared(), 0)
    assert.deepStrictEqual([begins.actions, worksOf(begins)], [[], [1, 2].map((ordinal) => ({ kind: "boot", ordinal }))])
    const goesOn = decide(uncompared({ boot: verified(1), work: { running: null, ended: null } }), 0)
    assert.deepStrictEqual([goesOn.actions.map(describeAction), worksOf(goesOn)], [["Publish 0,1"], [{ kind: "boot", ordinal: 2 }]])
    const none = decide(fleetOf(3, [engine(1, { boot: verified(1, null) }), engine(2)], [], { boot: verified(0, null) }), 0)
    assert.deepStrictEqual([none.actions.map(describeAction), worksOf(none)], [["Publish 2"], [0, 1].map((ordinal) => ({ kind: "boot", ordinal }))])
  })

  it("get no traffic if they cannot be compared while another one serves: the comparison is repeated, and an event says so", () => {
    const tried = (attempts: number) => {
      const ended = { kind: "boot" as const, about: "pod-1 0", attempts, at: 0, failure: null, message: "Away.", byRepository: false }
      return engine(1, { boot: verified(1, null), work: { running: null, ended } })
    }
    const waits = decide(fleetOf(2, [tried(3)], [0]), 3_999)
    assert.deepStrictEqual([waits.actions, waits.work, waits.requeueAt], [[], null, 4_000])
    assert.strictEqual(
      waits.message,
      "Away. The engine could not be compared with the verified answers. It gets no traffic while other engines serve. Seatrial repeats the comparison. 1 of 2 engines serve."
    )
    const repeats = decide(fleetOf(2, [tried(3)], [0]), 4_000)
    assert.deepStrictEqual([repeats.actions.map(({ _tag }) => _tag), worksOf(repeats)], [["RecordEvent"], [{ kind: "boot", ordinal: 1 }]])
    const later = decide(fleetOf(2, [tried(9)], [0]), minute)
    assert.deepStrictEqual([later.actions, later.work], [[], "boot"])
    assert.deepStrictEqual(acts(fleetOf(2, [tried(3)], [0], { pod: podOf(0, { nodeDownSince: 0 }) })), ["Publish 0,1", "RecordEvent"])
    assert.deepStrictEqual(acts(fleetOf(2, [tried(3)], [0], { pod: podOf(0, { ready: false }) })), ["Publish 1", "RecordEvent"])
  })

  it("that could not be compared get traffic one at a time if no engine serves, and wait for a compared one", () => {
    const ended = (ordinal: number) => ({
      kind: "boot" as const,
      about: `pod-${ordinal} 0`,
      attempts: 3,
      at: 0,
      failure: null,
      message: "Away.",
      byRepository: false
    })
    const tried = (ordinal: number) => ({ boot: verified(ordinal, null), work: { running: null, ended: ended(ordinal) } })
    const none = decide(fleetOf(3, [engine(1, tried(1)), engine(2, tried(2))], [], tried(0)), 4_000)
    assert.deepStrictEqual(none.actions.map(describeAction), ["Publish 0", "RecordEvent", "RecordEvent", "RecordEvent"])
    assert.deepStrictEqual(
      worksOf(none).map(({ ordinal }) => ordinal),
      [1, 2]
    )
    const compared = decide(fleetOf(3, [engine(1, tried(1)), engine(2)], [], tried(0)), 4_000)
    assert.deepStrictEqual(compared.actions.map(describeAction), ["Publish 2", "RecordEvent", "RecordEvent"])
    assert.deepStrictEqual(
      worksOf(compared).map(({ ordinal }) => ordinal),
      [0, 1]
    )
  })

  it("that differ are each recorded for their own node, however their comparisons end", () => {
    const at = (ordinal: number, time: number) => {
      const verdict = { outcome: "differs" as const, message: "", failures: 2, at: time }
      return { pod: podOf(ordinal, { node: `node-${ordinal}` }), boot: { boot: `pod-${ordinal} 0`, failures: 2, verdict } }
    }
    const noted = { nodeFaults: [{ node: "node-0", code: "starts_differ", at: 12 }] }
    const both = (run: Partial<Observation["run"]>) => {
      const fleet = fleetOf(2, [engine(1, at(1, 11))], [], at(0, 10))
      return decide({ ...fleet, run: { ...fleet.run, ...run } }, 20).actions.map(describeAction)
    }
    assert.deepStrictEqual(both(noted), ["RecordEvent", "NoteNodeFault 1"])
    const all = [...noted.nodeFaults, { node: "node-1", code: "starts_differ", at: 13 }]
    assert.deepStrictEqual(both({ nodeFaults: all }), [])
    // The note of the first attempt on the node does not say that no engine serves.
    assert.deepStrictEqual(both({ nodeFaults: [...noted.nodeFaults, { node: "node-1", code: "fingerprints_differ", at: 13 }] }), [
      "RecordEvent",
      "NoteNodeFault 1"
    ])
  })

  it("do not mark their model as different while another one serves", () => {
    const differs = engine(1, { boot: verified(1, "differs") })
    const codes = (observation: Observation) => decide(observation, 0).actions.flatMap((action) => (action._tag === "NoteNodeFault" ? action.code : []))
    assert.deepStrictEqual(codes(fleetOf(2, [differs], [0])), ["fingerprints_differ"])
    assert.deepStrictEqual(codes(fleetOf(2, [differs], [], { pod: podOf(0, { ready: false }) })), ["starts_differ"])
  })

  it("are described by the first one that does not serve, and by their number", () => {
    const { message } = decide(fleetOf(3, [engine(1), engine(2, { pod: podOf(2, { ready: false }) })], [0, 1, 2]), 0)
    assert.strictEqual(message, "An engine is not ready: It loads the model. 2 of 3 engines serve.")
    const ended = (change: Partial<ObservedPod>) => decide(fleetOf(2, [engine(1, { pod: podOf(1, { ready: false, lost: "gone", ...change }) })], [0]), 0)
    assert.strictEqual(ended({}).message, "An engine was evicted: gone. It is replaced. 1 of 2 engines serve.")
    assert.strictEqual(ended({ deleting: true }).message, "An engine has ended, because its pod was deleted. 1 of 2 engines serve.")
    assert.strictEqual(decide(fleetOf(2, [engine(1)], [0, 1]), 0).message, "Serves. 2 of 2 engines serve.")
  })

  it("are shown by a run that reuses their revision, which does not act on them", () => {
    const owner = fleetOf(2, [engine(1, { pod: podOf(1, { name: enginePodName(otherDeployment, 1) }) })], [0, 1], { pod: podOf(0, { ready: false }) })
    const endpoints = [{ ...endpointOf(1), pod: enginePodName(otherDeployment, 1) }]
    const decision = decide({ ...owner, run: { ...owner.run, engineRun: otherDeployment, endpoints } }, 0)
    assert.deepStrictEqual(decision.actions, [])
    assert.match(decision.message, /^The model serves with the engine of dep_/)
  })

  const ends: ReadonlyArray<readonly [string, Partial<Observation["run"]>]> = [
    ["a newer revision serves", { revision: { ...revision, status: "superseded" } }],
    ["the model is deleted", { modelDeleted: true }],
    ["the model is disabled", { modelDisabled: true }],
    ["another run takes their GPUs", { replacedBy: otherDeployment }]
  ]
  for (const [why, change] of ends)
    it(`all end if ${why}, after they were withdrawn`, () => {
      const serving = fleetOf(2, [engine(1)], [0, 1])
      const ending: Observation = { ...serving, run: { ...serving.run, ...change } }
      assert.deepStrictEqual(acts(ending), ["Publish "])
      const withdrawn: Observation = { ...ending, withdrawnAt: 0, run: { ...ending.run, endpoints: [] } }
      assert.deepStrictEqual(acts(withdrawn, drainTime - 1), [])
      assert.deepStrictEqual(acts(withdrawn, drainTime), ["RemovePod 0", "RemovePod 1"])
    })

  it("keep the last endpoint in traffic if the number is lowered, even if its node does not respond", () => {
    const silent = engine(2, { pod: { ...podOf(2), nodeDownSince: 0 } })
    assert.notInclude(acts({ ...fleetOf(1, [silent], [2]), pod: null }), "Publish ")
  })

  it("are decided as before if there is one", () => {
    const one = fleetOf(1, [], [0])
    assert.deepStrictEqual(decide(one, 0), decide({ ...one, run: { ...one.run, replicas: 1 } }, 0))
    assert.strictEqual(decide(one, 0).message, "Serves.")
    assert.strictEqual(firstEngine(one), one)
  })
})

/** The endpoints after the decision. */
const after = ({ run }: Observation, { actions }: Decision) => actions.find((action) => action._tag === "Publish")?.endpoints ?? run.endpoints

const wrongs = (observation: Observation, now: number): ReadonlyArray<string> => {
  const decision = decide(observation, now)
  const { actions, rule } = decision
  if (!rule.startsWith("activated.serving.fleet")) return []
  const wrong: Array<string> = []
  const hold = (holds: boolean, what: string) => {
    if (!holds) wrong.push(`${what} (${rule}: ${actions.map(describeAction).join(" ")})`)
  }
  const { growth, run } = observation
  const replicas = run.replicas ?? 1
  const endpoints = after(observation, decision)
  const members = enginesOf(observation)
  hold(actions.filter(({ _tag }) => _tag === "Publish").length <= 1, "publishes twice")
  let staying = 0
  for (const { alone, ordinal } of members) {
    // As a model with one engine.
    const single = decide({ ...alone, run: { ...alone.run, replicas: 1 } }, now)
    const stays = after(alone, single).filter(({ url }) => url === alone.pod?.url && alone.run.endpoints.some((endpoint) => endpoint.url === url))
    if (stays.length === 0) continue
    staying++
    const mayLeave = ordinal >= replicas || (growth.yields > 0 && ordinal > 0) || alone.boot?.verdict?.outcome === "suspect"
    hold(mayLeave || stays.every(({ url }) => endpoints.some((endpoint) => endpoint.url === url)), `drops the endpoint of the good engine ${ordinal}`)
  }
  hold(staying === 0 || endpoints.length > 0, "takes the last good engine out of traffic")
  for (const { pod: name, url } of endpoints) {
    const member = members.find(({ ordinal }) => enginePodName(run.engineRun, ordinal) === name)
    const isNew = !run.endpoints.some((endpoint) => endpoint.url === url)
    const { boot = null, pod: own = null } = member?.alone ?? {}
    const added = endpoints.filter((endpoint) => !run.endpoints.some((each) => each.url === endpoint.url))
    const isNeeded =
      (run.earlier ?? 0) === 0 && added.length === 1 && !members.some((other) => other !== member && isGood(other) && other.alone.pod?.nodeDownSince === null)
    const isCompared = boot === null || boot.verdict !== null || (isNeeded && member !== undefined && (endedOf(member.alone, "boot")?.attempts ?? 0) >= 3)
    hold(
      !isNew || (own?.ready === true && own.url === url && isCompared && !["differs", "suspect"].includes(boot?.verdict?.outcome ?? "")),
      `publishes ${name} without a verdict`
    )
  }
  const created = actions.flatMap((action) => (action._tag === "EnsurePod" ? (action.ordinal ?? 0) : []))
  hold(new Set(created).size === created.length && created.every((ordinal) => ordinal < replicas), "creates an engine that nobody wants")
  hold(created.filter((ordinal) => ordinal > 0).length <= growth.room, "creates more engines than there is room for")
  hold(
    created.every((ordinal) => members.find((member) => member.ordinal === ordinal)?.alone.pod === null),
    "creates an engine that exists"
  )
  for (const action of actions) {
    if (action._tag !== "RemovePod") continue
    const removed = members.find(({ ordinal }) => ordinal === (action.ordinal ?? 0))
    hold(removed?.alone.pod?.uid === action.uid, "deletes the pod of another engine")
    hold(!endpoints.some((endpoint) => endpoint.pod === removed?.alone.pod?.name), "deletes an engine with traffic")
  }
  return wrong
}

describe("any fleet", () => {
  it.prop(
    "keeps its good engines in traffic, gives none traffic without a verdict, and has no more than wanted",
    [Schema.Int],
    ([seed]) => {
      const draw = random(seed)
      for (let count = 0; count < 100; count++) {
        const { now, seen } = anyFleet(draw)
        assert.strictEqual(wrongs(seen, now).join("; "), "", `seed ${seed}`)
      }
    },
    { arbitrary: { runs: Math.ceil(Number(process.env.SEATRIAL_FLEET_WORLDS ?? 3_000) / 100) } }
  )

  it("is drawn with engines that serve, start, leave and are missing", () => {
    const draw = random(1)
    const drawn = Array.from({ length: 2_000 }, () => anyFleet(draw))
    const rules = drawn.filter(({ now, seen }) => decide(seen, now).rule.startsWith("activated.serving.fleet"))
    assert.isAbove(rules.length, 1_000)
    const seenActions = new Set(rules.flatMap(({ now, seen }) => decide(seen, now).actions.map(describeAction)))
    for (const action of ["EnsurePod 1", "RemovePod 2", "Publish 0,1", "NoteNodeFault 1"]) assert.include([...seenActions], action)
  })

  it("narrows to an engine that has only its own endpoints", () => {
    const observation = fleetOf(2, [engine(1)], [0, 1])
    assert.deepStrictEqual(firstEngine(observation).run.endpoints, [endpointOf(0)])
    assert.deepStrictEqual(engineAlone(observation, engine(1)).run.endpoints, [endpointOf(1)])
  })
})
