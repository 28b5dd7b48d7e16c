import { assert, describe, it } from "@effect/vitest"
import { withheld } from "../../src/decide/bootCheck.ts"
import { decide } from "../../src/decide/decide.ts"
import { keepVerdict, observeBoot } from "../../src/gather/BootVerdicts.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import type { ObservedBoot } from "../../src/observation/ObservedPod.ts"
import { observationOf, otherDeployment, pod, podClass, report, revision, run, withRevision } from "../observations.ts"
import { words } from "./words.ts"

const prints = { ...report, fingerprints: [{ prompt: "p", sha256: "a".repeat(64) }], fingerprint_card: "simulated x1" }
const serves = withRevision({ status: "active", checks: prints })
const start = (outcome: "same" | "drifted" | "differs" | null, failures = 0, at = 0): ObservedBoot => ({
  boot: "pod-1 0",
  failures,
  verdict: outcome === null ? null : { outcome, message: "3 of 8 greedy answers differ.", failures, at }
})
const activated = (change: Partial<Observation>, endpoints: typeof run.endpoints = []) =>
  observationOf("activated", { pod, podClass: { ...podClass, evictable: true }, ...change }, { ...serves, endpoints })
/** The last attempt failed at that time; the comparison ended at 5. */
const gaveUp = (at: number) =>
  observationOf("activated", { pod, boot: start("differs", 2, 5) }, { ...serves, nodeFaults: [{ node: "node-1", code: "starts_differ", at }] })
const endpoint = { url: pod.url ?? "", pod: pod.name, reachable: true }
const old = { ...endpoint, url: "http://127.0.9.9:8000" }
/** Its container restarted in the pod. */
const again = { ...pod, restarts: 1 }
const publishes = `publish ${pod.url}`
const away = (attempts: number, about = "pod-1 0") => ({
  running: null,
  ended: { kind: "boot" as const, about, attempts, at: 0, failure: null, message: "Away.", byRepository: false }
})
/** The engine restarts while engines of an earlier revision serve. Its last attempt failed that many milliseconds ago. */
const moves = (attempts: number, since: number): Observation => {
  const observation = activated({ boot: start(null), work: { running: null, ended: { ...away(attempts).ended, at: -since } } })
  return { ...observation, run: { ...observation.run, earlier: 1 } }
}

describe("a restarted engine", () => {
  const cases: ReadonlyArray<readonly [promise: string, observation: Observation, expected: string]> = [
    ["is compared with the verified answers before it gets traffic", activated({ boot: start(null) }), "work boot"],
    ["gets traffic if its answers are the same", activated({ boot: start("same") }), publishes],
    ["and if they differ only by rounding, with an event", activated({ boot: start("drifted") }), `RecordEvent, ${publishes}`],
    [
      "gets none if they differ, and another node is tried",
      activated({ boot: start("differs", 1), elsewhere: true }),
      "RecordEvent, NoteNodeFault, remove pod pod-1"
    ],
    [
      "stays without traffic if there is no other node, with an event and a record for later deployments",
      activated({ boot: start("differs", 1) }),
      "RecordEvent, NoteNodeFault"
    ],
    ["and if a second node gives the same answers", activated({ boot: start("differs", 2), elsewhere: true }), "RecordEvent, NoteNodeFault"],
    ["once", gaveUp(5), ""],
    ["of each start", gaveUp(4), "RecordEvent, NoteNodeFault"],
    [
      "is replaced by a new pod, which checks its weights first, if its container restarted in its pod",
      activated({ boot: start("differs", 1), pod: again }),
      "RecordEvent, remove pod pod-1"
    ],
    ["which has its traffic taken first", activated({ boot: start("differs", 1), pod: again }, [old]), "publish nothing, RecordEvent, remove pod pod-1"],
    [
      "is tried on another node if there is one",
      activated({ boot: start("differs", 1), pod: again, elsewhere: true }),
      "RecordEvent, NoteNodeFault, remove pod pod-1"
    ],
    ["and stays without traffic if the start before gave the same answers", activated({ boot: start("differs", 2), pod: again }), "RecordEvent, NoteNodeFault"],
    [
      "is still compared if it answers its probes late in that time",
      activated({ boot: start(null), pod: { ...pod, ready: false }, work: { running: "boot", ended: null }, sameStart: true }),
      `work boot, again ${podClass.bootDeadlineSeconds * 1_000}`
    ],
    ["is compared again if an attempt failed", activated({ boot: start(null), work: away(1) }), "again 1000"],
    ["serves if three attempts failed, with an event", activated({ boot: start(null), work: away(3) }), `RecordEvent, ${publishes}`],
    ["does not while engines of an earlier revision serve, and is compared again", moves(3, 0), "again 3000"],
    ["with an event", moves(3, 4_000), "RecordEvent, work boot, again 3000"],
    ["has as many attempts after a failed comparison of an earlier start", activated({ boot: start(null), work: away(3, "pod-1 9") }), "work boot"],
    ["is left alone while it has traffic", activated({ boot: start(null) }, [endpoint]), ""],
    ["loses nothing that another start has", activated({ boot: start(null) }, [old]), "publish nothing, work boot"],
    ["is not compared if its revision has no fingerprints", activated({ boot: null }), publishes],
    [
      "is compared before it is published to gateways, if its trial was another run's",
      observationOf("activating", { pod, boot: start(null) }, withRevision({ checks: prints })),
      "work boot"
    ],
    [
      "and before it is activated, if it restarted after it was published",
      observationOf("activating", { pod, boot: start(null) }, { ...withRevision({ checks: prints }), endpoints: [endpoint] }),
      "work boot"
    ],
    [
      "and is tried on another node then",
      observationOf("activating", { pod, boot: start("differs", 1), elsewhere: true }, withRevision({ checks: prints })),
      "NoteNodeFault, enter queued"
    ],
    [
      "or fails",
      observationOf("activating", { pod, boot: start("differs", 1) }, withRevision({ checks: prints })),
      "keep log, enter failed nondeterministic_output"
    ],
    [
      "gets a new pod before that, if its container restarted in its pod",
      observationOf("activating", { pod: again, boot: start("differs", 1) }, { ...withRevision({ checks: prints }), endpoints: [endpoint] }),
      "publish nothing, RecordEvent, remove pod pod-1"
    ],
    [
      "once",
      observationOf("activating", { pod: again, boot: start("differs", 2) }, withRevision({ checks: prints })),
      "keep log, enter failed nondeterministic_output"
    ]
  ]
  for (const [promise, observation, expected] of cases) {
    it(promise, () => assert.strictEqual(words(decide(observation, 0)), expected))
  }

  it("says why it has no traffic until it gets some", () => {
    const reason = (change: Partial<Observation>, endpoints: typeof run.endpoints = []) => withheld(activated(change, endpoints))
    assert.strictEqual(reason({ boot: start(null) }), "EngineNotReady")
    assert.strictEqual(reason({ boot: start("differs", 2) }), "AnswersDiffer")
    assert.deepStrictEqual([reason({ boot: start("same") }), reason({ boot: start("drifted") }), reason({ boot: null })], [null, null, null])
    // An engine with traffic keeps it, whatever this operator knows. An unavailable engine has another reason.
    assert.isNull(reason({ boot: start(null) }, [endpoint]))
    for (const gone of [{ ready: false }, { deleting: true }, { lost: "evicted" }])
      assert.isNull(reason({ boot: start("differs", 1), pod: { ...pod, ...gone } }))
  })

  it("is not shown as serving by a run that reuses it", () => {
    const message = (boot: ObservedBoot, endpoints: typeof run.endpoints = []) =>
      decide({ ...activated({ boot }), run: { ...activated({ boot }, endpoints).run, engineRun: otherDeployment } }, 0).message
    assert.match(message(start("same")), /waits until a gateway has reached it\.$/)
    assert.match(message(start("same"), [endpoint]), /^The model serves with the engine of/)
    assert.match(message(start(null)), /^The engine of .* is not ready, because its answers are being compared with the verified ones\.$/)
    assert.match(
      message(start("differs", 2)),
      /^The engine's answers differ from the verified ones: 3 of 8 greedy answers differ\. The engine gets no traffic\.$/
    )
  })

  it("leaves gateways two minutes from the end of its comparison", () => {
    const verified = withRevision({ checks: prints })
    const at = (change: Partial<Observation>, now: number, endpoints: typeof run.endpoints = []) =>
      words(decide(observationOf("activating", { pod, ...change }, { ...verified, endpoints }), now))
    const tried = { running: null, ended: { ...away(3).ended, at: 150_000 } }
    const publishedEndpoints = [{ ...endpoint, reachable: false }]
    assert.deepStrictEqual(
      [
        at({ boot: start(null) }, 130_000),
        at({ boot: start(null), work: tried }, 160_000),
        at({ boot: start("same", 0, 150_000) }, 160_000),
        at({ boot: start("same", 0, 150_000) }, 269_000, publishedEndpoints),
        at({ boot: start("same", 0, 150_000) }, 270_000, publishedEndpoints)
      ],
      ["work boot", `RecordEvent, ${publishes}, again 270000`, `${publishes}, again 270000`, "again 270000", "keep log, enter failed gateway_unreachable"]
    )
  })

  it("is identified by its pod and restart count, and compared only on the GPU type of its fingerprints", () => {
    const verdicts = new Map()
    const verified = { ...run, revision: { ...revision, checks: prints } }
    const seenOf = (change: object = {}) => observeBoot(verdicts, verified, podClass, { ...pod, ...change })
    assert.isNull(seenOf()?.verdict)
    keepVerdict(verdicts, pod, { outcome: "differs", message: "m", at: 0 })
    assert.deepInclude(seenOf()?.verdict, { outcome: "differs", failures: 1 })
    assert.deepStrictEqual([seenOf({ restarts: 1 })?.verdict, seenOf({ restarts: 1 })?.failures, seenOf({ uid: "pod-2" })?.verdict], [null, 1, null])
    keepVerdict(verdicts, { ...pod, uid: "pod-2" }, { outcome: "differs", message: "m", at: 0 })
    assert.strictEqual(seenOf({ uid: "pod-2" })?.failures, 2)
    keepVerdict(verdicts, pod, { outcome: "same", message: "", at: 0 })
    assert.strictEqual(seenOf()?.failures, 0)
    assert.isNull(observeBoot(verdicts, verified, { ...podClass, hostClass: { ...podClass.hostClass, gpu_count: 2 } }, pod))
    assert.isNull(observeBoot(verdicts, { ...run, revision: { ...revision, checks: report } }, podClass, pod))
    // A model without a chat template has no fingerprints, but likelihoods.
    const scored = { ...report, checks: [{ name: "text_likelihood", passed: true }] }
    assert.isNotNull(observeBoot(verdicts, { ...run, revision: { ...revision, checks: scored } }, podClass, pod))
    const elsewhere = { ...podClass, hostClass: { ...podClass.hostClass, gpu_count: 2 } }
    assert.isNull(observeBoot(verdicts, { ...run, revision: { ...revision, checks: scored } }, elsewhere, pod))
  })
})
