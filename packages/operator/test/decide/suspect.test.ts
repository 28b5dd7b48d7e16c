import { assert, describe, it } from "@effect/vitest"
import { withheld } from "../../src/decide/bootCheck.ts"
import { decide } from "../../src/decide/decide.ts"
import { keepAlarm, keepVerdict, observeBoot } from "../../src/gather/BootVerdicts.ts"
import { drainTime } from "../../src/limits.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import type { ObservedEngine } from "../../src/observation/ObservedEngine.ts"
import type { ObservedBoot } from "../../src/observation/ObservedPod.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { deploymentId, observationOf, pod, podClass, report, revision, run, withRevision } from "../observations.ts"

const urlOf = (ordinal: number) => `http://127.0.1.${ordinal + 1}:8000`
const nameOf = (ordinal: number) => enginePodName(deploymentId, ordinal)
const podOf = (ordinal: number, ready = true) => ({ ...pod, name: nameOf(ordinal), uid: `pod-${ordinal}`, url: urlOf(ordinal), ready })
const bootOf = (ordinal: number, outcome: "same" | "suspect", alarms = 1): ObservedBoot => ({
  boot: `pod-${ordinal} 0`,
  failures: alarms,
  verdict: { outcome, message: "40 probes.", failures: alarms, at: 5 }
})
const member = (ordinal: number, outcome: "same" | "suspect", change: Partial<ObservedEngine> = {}): ObservedEngine => ({
  ordinal,
  pod: podOf(ordinal),
  boot: bootOf(ordinal, outcome),
  admission: null,
  elsewhere: false,
  outdated: false,
  work: { running: null, ended: null },
  sameStart: false,
  withdrawnAt: null,
  requests: null,
  ...change
})
/** No attempt to compare it had a result. */
const uncompared = member(2, "same", {
  boot: { boot: "pod-2 0", failures: 0, verdict: null },
  work: { running: null, ended: { kind: "boot", about: "pod-2 0", attempts: 9, at: 0, failure: null, message: "Away.", byRepository: false } }
})
/** Its alarm is earlier than the note about another node. */
const onOtherNode = member(1, "suspect", { pod: { ...podOf(1), node: "node-2" } })
const consenting = { ...podClass, sentinel: { withdrawLast: true } }
const prints = { ...report, fingerprints: [{ prompt: "p", sha256: "a".repeat(64) }], fingerprint_card: "simulated x1" }
const serves = withRevision({ status: "active", checks: prints })

/** A serving revision with these engines; `published`: the ordinals of those with traffic. */
const model = (
  first: ObservedBoot,
  others: ReadonlyArray<ObservedEngine>,
  published: ReadonlyArray<number>,
  change: Partial<Observation> = {},
  changeOfRun: Partial<Observation["run"]> = {}
) =>
  observationOf(
    "activated",
    { resource: { uid: "r", shownPhase: "activated" }, pod: podOf(0), boot: first, engines: others, ...change },
    {
      ...serves,
      replicas: others.length + 1,
      endpoints: published.map((ordinal) => ({ url: urlOf(ordinal), pod: nameOf(ordinal), reachable: true })),
      ...changeOfRun
    }
  )

const acts = (observation: Observation, now = 100) =>
  decide(observation, now).actions.map((action) => {
    switch (action._tag) {
      case "Publish":
        return `Publish ${action.endpoints.map((endpoint) => endpoint.pod.slice(-1)).join(",")}`
      case "RemovePod":
        return `RemovePod ${action.ordinal ?? 0}`
      case "NoteNodeFault":
        return `${action.code} ${action.ordinal ?? 0}`
      case "RecordEvent":
        return action.reason
      default:
        return action._tag
    }
  })

const [good, bad] = [bootOf(0, "same"), bootOf(0, "suspect")]
const noted = { nodeFaults: [{ node: "node-1", code: "answers_changed", at: 5 }] }
const recorded = ["AnswersChanged", "answers_changed 0"]

/** The first of two engines starts. */
const starting = model(good, [member(1, "suspect")], [1], { pod: podOf(0, false), boot: { boot: "pod-9 0", failures: 0, verdict: null }, podClass: consenting })

describe("an engine whose probes differ from its trial", () => {
  const cases: ReadonlyArray<readonly [promise: string, observation: Observation, actions: ReadonlyArray<string>]> = [
    ["loses its traffic if another one serves", model(bad, [member(1, "same")], [0, 1]), ["Publish 1", ...recorded]],
    ["also if it is not the first", model(good, [member(1, "suspect")], [0, 1]), ["Publish 0", "AnswersChanged", "answers_changed 1"]],
    ["keeps it if it is the only one, which is recorded", model(bad, [], [0]), recorded],
    ["once", model(bad, [], [0], {}, noted), []],
    [
      "loses it if an engine on another node was noted later",
      model(good, [onOtherNode], [0, 1], {}, noted),
      ["Publish 0", "AnswersChanged", "answers_changed 1"]
    ],
    [
      "loses it although a further one could not be compared",
      model(good, [member(1, "suspect"), uncompared], [0, 1]),
      ["Publish 0", "AnswersChanged", "answers_changed 1"]
    ],
    ["keeps it if the others do not serve", model(bad, [member(1, "same", { pod: podOf(1, false) })], [0]), recorded],
    ["loses it although it is the only one if the host class permits this", model(bad, [], [0], { podClass: consenting }), [...recorded, "Publish "]],
    ["loses it one after the other if all differ", model(bad, [member(1, "suspect")], [0, 1], {}, noted), ["Publish 1"]],
    ["waits for the one before it to be replaced", model(bad, [member(1, "suspect")], [1], { withdrawnAt: 100 }, noted), []],
    ["keeps it while another one is replaced, although the host class permits to withdraw the last one", starting, ["AnswersChanged", "answers_changed 1"]],
    [
      "loses it one after the other also if all of four differ",
      model(
        bad,
        [1, 2, 3].map((ordinal) => member(ordinal, "suspect")),
        [0, 1, 2, 3],
        { podClass: consenting },
        noted
      ),
      ["Publish 1,2,3"]
    ],
    [
      "waits for the pod of the one before it",
      model(
        bad,
        [1, 2].map((ordinal) => member(ordinal, "suspect")),
        [1, 2],
        { pod: null },
        noted
      ),
      ["EnsurePod"]
    ],
    ["keeps it if replacing did not help", model(bootOf(0, "suspect", 4), [member(1, "same")], [0, 1]), recorded],
    ["gets no traffic again after it was withdrawn", model(bad, [member(1, "same")], [1], { withdrawnAt: 100 }), recorded]
  ]
  for (const [promise, observation, actions] of cases) it(promise, () => assert.deepStrictEqual(acts(observation), actions))

  it("finishes its requests before its pod is deleted, also if it is the first or the only one", () => {
    const withdrawn = (inFlight: number) => model(bad, [], [], { podClass: consenting, withdrawnAt: 0 }, { ...noted, inFlight })
    assert.deepStrictEqual(acts(withdrawn(0), drainTime - 1), [])
    assert.deepStrictEqual(acts(withdrawn(1), drainTime), [])
    assert.deepStrictEqual(acts(withdrawn(0), drainTime), ["RemovePod 0"])
    const other = (requests: number) => model(good, [member(1, "suspect", { withdrawnAt: 0, requests })], [0], {}, noted)
    assert.deepStrictEqual(acts(other(1), drainTime), [])
    assert.deepStrictEqual(acts(other(0), drainTime), ["RemovePod 1"])
  })

  it("is shown by the message, and by the condition Ready if it has no traffic", () => {
    const only = model(bad, [], [0])
    assert.match(
      decide(only, 100).message,
      /^Serves\. The engine's answers differ from those of its trial: 40 probes\. It goes on because the model has no other/
    )
    assert.isNull(withheld(only))
    assert.strictEqual(withheld(model(bad, [], [], { podClass: consenting })), "AnswersDiffer")
  })

  it("is compared for the first time if its container restarts in its pod", () => {
    const verdicts = new Map()
    const own = podOf(0)
    const alarm = { pod: own.name, podUid: own.uid, restarts: 0, alarmedAt: 5, since: 1, probes: 40, lately: 2 }
    const failuresOf = (restarted: typeof own) => {
      keepAlarm(verdicts, alarm)
      keepVerdict(verdicts, restarted, { outcome: "differs", message: "", at: 9 })
      return verdicts.get(own.name)?.failures
    }
    assert.strictEqual(failuresOf({ ...own, restarts: 1 }), 1)
    assert.strictEqual(failuresOf({ ...own, uid: "pod-9" }), 3)
  })

  it("is another one after its next start", () => {
    const verdicts = new Map()
    const own = podOf(0)
    keepAlarm(verdicts, { pod: own.name, podUid: own.uid, restarts: 0, alarmedAt: 5, since: 1, probes: 40, lately: 2 })
    const serving = { ...run, ...serves, revision: { ...revision, checks: prints } }
    assert.deepStrictEqual(observeBoot(verdicts, serving, podClass, own)?.verdict?.outcome, "suspect")
    assert.isNull(observeBoot(verdicts, serving, podClass, { ...own, restarts: 1 })?.verdict)
    assert.isNull(observeBoot(verdicts, serving, podClass, { ...own, uid: "pod-9" })?.verdict)
  })
})
