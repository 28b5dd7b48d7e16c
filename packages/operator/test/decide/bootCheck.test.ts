import { assert, describe, it } from "@effect/vitest"
import { withheld } from "../../src/decide/bootCheck.ts"
import { decide } from "../../src/decide/decide.ts"
import type { Observation, ObservedBoot } from "../../src/decide/Observation.ts"
import { keepVerdict, observeBoot } from "../../src/gather/BootVerdicts.ts"
import { deploymentId, found, observationOf, otherDeployment, pod, podClass, report, revision, run } from "../observations.ts"
import { words } from "./words.ts"

const prints = { ...report, fingerprints: [{ prompt: "p", sha256: "a".repeat(64) }], fingerprint_card: "simulated x1" }
const serves = found({ status: "active", checks: prints })
const start = (outcome: "same" | "drifted" | "differs" | null, failures = 0, at = 0): ObservedBoot => ({
  boot: "pod-1 0",
  failures,
  verdict: outcome === null ? null : { outcome, message: "3 of 8 greedy answers differ.", failures, at }
})
const activated = (change: Partial<Observation>, endpoints: typeof run.endpoints = []) =>
  observationOf("activated", { pod, podClass: { ...podClass, evictable: true }, ...change }, { ...serves, endpoints })
/** Given up at that time, and compared at 5. */
const gaveUp = (at: number) =>
  observationOf("activated", { pod, boot: start("differs", 2, 5) }, { ...serves, nodeFaults: [{ node: "node-1", code: "starts_differ", at }] })
const endpoint = { url: pod.url ?? "", pod: pod.name, reachable: true }
const old = { ...endpoint, url: "http://127.0.9.9:8000" }
/** Its container was started again in it. */
const again = { ...pod, restarts: 1 }
const publishes = `publish ${pod.url}`
const away = (attempts: number, about = "pod-1 0") => ({
  running: null,
  ended: { kind: "boot" as const, about, attempts, at: 0, failure: null, message: "Away.", byRepository: false }
})

describe("a restarted engine", () => {
  const cases: ReadonlyArray<readonly [promise: string, observation: Observation, expected: string]> = [
    ["is compared with what was verified before it gets traffic", activated({ boot: start(null) }), "work boot"],
    ["gets it where its answers are the same", activated({ boot: start("same") }), publishes],
    ["and where they differ as rounding makes them, which is told", activated({ boot: start("drifted") }), `Tell, ${publishes}`],
    [
      "gets none where they differ, and another node is tried",
      activated({ boot: start("differs", 1), elsewhere: true }),
      "Tell, NoteNodeFault, remove pod pod-1"
    ],
    [
      "stays without where there is no other node, which is told, and noted for who deploys it again",
      activated({ boot: start("differs", 1) }),
      "Tell, NoteNodeFault"
    ],
    ["and where a second node gives the same", activated({ boot: start("differs", 2), elsewhere: true }), "Tell, NoteNodeFault"],
    ["once", gaveUp(5), ""],
    ["of each start", gaveUp(4), "Tell, NoteNodeFault"],
    [
      "is left for another pod, which looks at its weights first, where its container was started again in its own",
      activated({ boot: start("differs", 1), pod: again }),
      "Tell, remove pod pod-1"
    ],
    ["which has its traffic taken first", activated({ boot: start("differs", 1), pod: again }, [old]), "publish nothing, Tell, remove pod pod-1"],
    ["on another node where there is one", activated({ boot: start("differs", 1), pod: again, elsewhere: true }), "Tell, NoteNodeFault, remove pod pod-1"],
    ["and stays without where the start before that gave the same", activated({ boot: start("differs", 2), pod: again }), "Tell, NoteNodeFault"],
    [
      "is asked on where it answers its probes late meanwhile",
      activated({ boot: start(null), pod: { ...pod, ready: false }, work: { running: "boot", ended: null }, sameStart: true }),
      `work boot, again ${podClass.bootDeadlineSeconds * 1_000}`
    ],
    ["is asked again where it could not be", activated({ boot: start(null), work: away(1) }), "again 1000"],
    ["serves where nobody could ask it three times, which is told", activated({ boot: start(null), work: away(3) }), `Tell, ${publishes}`],
    ["is asked as often where an earlier start could not be", activated({ boot: start(null), work: away(3, "pod-1 9") }), "work boot"],
    ["is let be where it has its traffic", activated({ boot: start(null) }, [endpoint]), ""],
    ["loses nothing that another start has", activated({ boot: start(null) }, [old]), "publish nothing, work boot"],
    ["is not asked where its revision has no fingerprints", activated({ boot: null }), publishes],
    [
      "before gateways are told of it too, where its trial was another's",
      observationOf("activating", { pod, boot: start(null) }, found({ checks: prints })),
      "work boot"
    ],
    [
      "and before it has its traffic, where it started again after they were told",
      observationOf("activating", { pod, boot: start(null) }, { ...found({ checks: prints }), endpoints: [endpoint] }),
      "work boot"
    ],
    [
      "and is tried on another node then",
      observationOf("activating", { pod, boot: start("differs", 1), elsewhere: true }, found({ checks: prints })),
      "NoteNodeFault, enter queued"
    ],
    ["or fails", observationOf("activating", { pod, boot: start("differs", 1) }, found({ checks: prints })), "keep log, enter failed nondeterministic_output"],
    [
      "where it was started again in its pod, another is tried before that",
      observationOf("activating", { pod: again, boot: start("differs", 1) }, { ...found({ checks: prints }), endpoints: [endpoint] }),
      "publish nothing, Tell, remove pod pod-1"
    ],
    [
      "once",
      observationOf("activating", { pod: again, boot: start("differs", 2) }, found({ checks: prints })),
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
    // What has its traffic has it, whatever this operator knows; and of what is away something else is told.
    assert.isNull(reason({ boot: start(null) }, [endpoint]))
    for (const gone of [{ ready: false }, { deleting: true }, { lost: "evicted" }])
      assert.isNull(reason({ boot: start("differs", 1), pod: { ...pod, ...gone } }))
  })

  it("is not shown as serving by a run that reuses it", () => {
    const message = (boot: ObservedBoot) => decide({ ...activated({ boot }), run: { ...activated({ boot }).run, engineRun: otherDeployment } }, 0).message
    assert.match(message(start("same")), /^Serves with the engine of/)
    assert.match(message(start(null)), /^The engine of .* is not ready: its answers are compared with the verified ones\.$/)
    assert.match(message(start("differs", 2)), /^The engine's answers differ from the verified ones: 3 of 8 greedy answers differ\. It gets no traffic\.$/)
  })

  it("leaves gateways two minutes from the end of its comparison", () => {
    const verified = found({ checks: prints })
    const at = (change: Partial<Observation>, now: number, endpoints: typeof run.endpoints = []) =>
      words(decide(observationOf("activating", { pod, ...change }, { ...verified, endpoints }), now))
    const tried = { running: null, ended: { ...away(3).ended, at: 150_000 } }
    const told = [{ ...endpoint, reachable: false }]
    assert.deepStrictEqual(
      [
        at({ boot: start(null) }, 130_000),
        at({ boot: start(null), work: tried }, 160_000),
        at({ boot: start("same", 0, 150_000) }, 160_000),
        at({ boot: start("same", 0, 150_000) }, 269_000, told),
        at({ boot: start("same", 0, 150_000) }, 270_000, told)
      ],
      ["work boot", `Tell, ${publishes}, again 270000`, `${publishes}, again 270000`, "again 270000", "keep log, enter failed gateway_unreachable"]
    )
  })

  it("is identified by its pod and restart count, and compared only on the GPU type of its fingerprints", () => {
    const verdicts = new Map()
    const verified = { ...run, revision: { ...revision, checks: prints } }
    const seenOf = (change: object = {}) => observeBoot(verdicts, verified, podClass, { ...pod, ...change })
    assert.isNull(seenOf()?.verdict)
    keepVerdict(verdicts, deploymentId, pod, { outcome: "differs", message: "m", at: 0 })
    assert.deepInclude(seenOf()?.verdict, { outcome: "differs", failures: 1 })
    assert.deepStrictEqual([seenOf({ restarts: 1 })?.verdict, seenOf({ restarts: 1 })?.failures, seenOf({ uid: "pod-2" })?.verdict], [null, 1, null])
    keepVerdict(verdicts, deploymentId, { ...pod, uid: "pod-2" }, { outcome: "differs", message: "m", at: 0 })
    assert.strictEqual(seenOf({ uid: "pod-2" })?.failures, 2)
    keepVerdict(verdicts, deploymentId, pod, { outcome: "same", message: "", at: 0 })
    assert.strictEqual(seenOf()?.failures, 0)
    assert.isNull(observeBoot(verdicts, verified, { ...podClass, hostClass: { ...podClass.hostClass, gpu_count: 2 } }, pod))
    assert.isNull(observeBoot(verdicts, { ...run, revision: { ...revision, checks: report } }, podClass, pod))
    // A model without messages has none, but the likelihood of texts.
    const scored = { ...report, checks: [{ name: "text_likelihood", passed: true }] }
    assert.isNotNull(observeBoot(verdicts, { ...run, revision: { ...revision, checks: scored } }, podClass, pod))
    const elsewhere = { ...podClass, hostClass: { ...podClass.hostClass, gpu_count: 2 } }
    assert.isNull(observeBoot(verdicts, { ...run, revision: { ...revision, checks: scored } }, elsewhere, pod))
  })
})
