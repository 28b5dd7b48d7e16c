import { assert, describe, it } from "@effect/vitest"
import type { Decision } from "../../src/decide/Decision.ts"
import { decide } from "../../src/decide/decide.ts"
import { copyDeadline, fetchAgain, fetchInterval, imageDeadline, provisioningDeadline } from "../../src/limits.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { ObservedFetch } from "../../src/observation/ObservedFetch.ts"
import type { ObservedCopy } from "../../src/observation/ObservedPod.ts"
import { observed, pod, podClass, revision, run } from "../observations.ts"

const state = { bytes: 2 ** 30, totalBytes: 2 ** 32, bytesPerSecond: 500_000_000, secondsLeft: 6, stalledSeconds: null, waiting: false }
const copy: ObservedCopy = { running: true, done: false, endedAt: null, failures: 0, failure: null, final: false, progress: state }
const cache = { claimName: "node-weights", storageClassName: null, sizeBytes: null, verify: "recorded" } as const
const full = { code: "weights_store_full", text: "It needs 10 bytes." } as const

const failureOf = ({ actions }: Decision) => actions.find((action) => action._tag === "Enter")?.failure ?? null

const observation = (change: Partial<ObservedCopy>, phase: "provisioning" | "checking" | "activated" = "provisioning"): Observation => ({
  ...observed,
  run: { ...run, phase, revision: { ...revision, status: phase === "activated" ? "active" : "draft" } },
  podClass: { ...podClass, weightsCache: cache },
  pod: { ...pod, started: false, ready: false, url: null, copy: { ...copy, ...change } }
})

describe("while the weights are copied to a node", () => {
  it("the run reports the progress, and is requeued soon", () => {
    const decision = decide(observation({}), 1_000)
    assert.strictEqual(decision.message, "Seatrial copies the weights to the node: 1.0 GiB of 4.0 GiB (25%), 500 MB/s, about 6 s left.")
    assert.strictEqual(decision.requeueAt, 1_000 + fetchInterval)
    assert.strictEqual(decide(observation({ progress: null }), 1_000).message, "Seatrial copies the weights to the node.")
    assert.match(decide(observation({ progress: { ...state, waiting: true } }), 1_000).message, /^Another pod copies the same weights to the node first/)
    assert.match(
      decide(observation({ progress: { ...state, bytesPerSecond: 0, secondsLeft: null, stalledSeconds: 90 } }), 1_000).message,
      /nothing arrived for 2 min\.$/
    )
    assert.match(decide(observation({}, "activated"), 1_000).message, /^The engine is not ready: Seatrial copies the weights to the node: 1\.0 GiB/)
  })

  it("it has hours, and the engine's deadline starts afterward", () => {
    assert.isNull(failureOf(decide(observation({}), provisioningDeadline + 1)))
    assert.strictEqual(failureOf(decide(observation({}), copyDeadline))?.code, "provisioning_timeout")
    assert.match(decide(observation({}), copyDeadline).message, /not copied to the node within 6 hours\. Deploy again, or choose another host class\.$/)
    const done = { running: false, done: true, endedAt: copyDeadline }
    assert.isNull(failureOf(decide(observation(done), copyDeadline + 1)))
    assert.strictEqual(failureOf(decide(observation(done), copyDeadline + provisioningDeadline))?.code, "provisioning_timeout")
    // Also if an engine is lost in its trial and another pod copies the weights.
    const boot = podClass.bootDeadlineSeconds * 1_000
    assert.match(decide(observation({}, "checking"), boot + 1).message, /^Seatrial copies the weights to the node: /)
    assert.isNull(failureOf(decide(observation({}, "checking"), boot + 1)))
    assert.isNull(failureOf(decide(observation({ ...done, endedAt: boot }, "checking"), 2 * boot - 1)))
    assert.strictEqual(failureOf(decide(observation({ ...done, endedAt: boot }, "checking"), 2 * boot))?.code, "engine_lost")
  })

  it("a failure is reported and retried, and fails the run with its cause and its host class if retries cannot help", () => {
    const again = decide(observation({ running: false, failures: 1, failure: full }), 1_000)
    assert.isNull(failureOf(again))
    assert.strictEqual(again.message, "The weights could not be copied to the node: It needs 10 bytes. Seatrial retries the copy.")
    for (const change of [{ failures: 3 }, { failures: 1, final: true }]) {
      const decision = decide(observation({ running: false, failure: full, ...change }), 1_000)
      assert.strictEqual(failureOf(decision)?.code, "weights_store_full")
      assert.match(
        failureOf(decision)?.text ?? "",
        /^It needs 10 bytes\. The weights could not be copied to a node of host class local \(weightsCache\)\. Deploy again, or choose another host class\.$/
      )
    }
  })

  it("weights that changed in the store are downloaded again, once, and never served", () => {
    const changed = { checks: true, running: false, failures: 1, final: true, failure: { code: "weights_mismatch", text: "Changed." } } as const
    const known = observation({ ...changed })
    const look = decide({ ...known, podClass: { ...podClass, weightsCache: null }, weights: { own: false } }, 1_000)
    assert.deepStrictEqual(
      look.actions.map(({ _tag }) => _tag),
      ["ForgetWeights", "EnsureFetch"]
    )
    const own = decide({ ...known, podClass: { ...podClass, weightsCache: null }, weights: { own: true } }, 1_000)
    assert.strictEqual(failureOf(own)?.code, "weights_mismatch")
    assert.match(decide(observation({ checks: true, progress: null }), 1_000).message, /^Seatrial checks whether the weights/)
  })

  it("the weights of a serving revision are downloaded again whenever its store loses them, and its engine then starts", () => {
    const missing = { running: false, failures: 1, failure: { code: "weights_missing", text: "Gone." } } as const
    const changed = { checks: true, running: false, failures: 1, final: true, failure: { code: "weights_mismatch", text: "Changed." } } as const
    const tags = (decision: Decision) => decision.actions.map(({ _tag }) => _tag)
    for (const change of [missing, changed, { ...missing, running: true }, { ...missing, checks: true, absent: true }] as const) {
      const lost = { ...observation(change, "activated"), weights: { own: true } }
      assert.deepStrictEqual(tags(decide(lost, 1_000)), ["ForgetWeights", "EnsureFetch"])
      assert.match(decide(lost, 1_000).message, /^The engine cannot use its weights: (Gone|Changed)\. Seatrial downloads the weights again\.$/)
      const forgotten = { ...lost, weights: null }
      const comes = decide({ ...forgotten, fetch: ObservedFetch.Active({ obstacle: null, progress: state }) }, 1_000)
      assert.deepStrictEqual([tags(comes), comes.requeueAt], [[], 1_000 + fetchInterval])
      assert.match(comes.message, /Seatrial downloads and verifies the weights: 1\.0 GiB of 4\.0 GiB/)
      const failed = { ...forgotten, fetch: ObservedFetch.Failed({ failure: { code: "download_failed", text: "No hub." }, endedAt: 1_000 }) }
      assert.deepStrictEqual([tags(decide(failed, 2_000)), decide(failed, 2_000).requeueAt], [[], 1_000 + fetchAgain])
      assert.deepStrictEqual(tags(decide(failed, 1_000 + fetchAgain)), ["RemoveFetch"])
      assert.deepStrictEqual(tags(decide({ ...forgotten, fetch: ObservedFetch.Succeeded() }, 1_000)), ["RemovePod", "NoteWeights", "RemoveFetch"])
      // Nothing is downloaded for a model that does not serve, or for an unknown store.
      assert.notInclude(tags(decide({ ...lost, run: { ...lost.run, modelDisabled: true } }, 1_000)), "EnsureFetch")
      assert.notInclude(tags(decide({ ...lost, podClass: null }, 1_000)), "EnsureFetch")
    }
    assert.notInclude(tags(decide({ ...observation({ running: false, failures: 1, failure: full }, "activated") }, 1_000)), "EnsureFetch")
  })

  it("a store that has lost them is checked by one download", () => {
    const missing = { running: false, failures: 3, failure: { code: "weights_missing", text: "Gone." } } as const
    const before = { ...observation(missing), weights: { own: false } }
    assert.deepStrictEqual(
      decide(before, 1_000).actions.map(({ _tag }) => _tag),
      ["ForgetWeights", "EnsureFetch"]
    )
    assert.strictEqual(failureOf(decide({ ...before, weights: { own: true } }, 1_000))?.code, "weights_missing")
  })

  it("a folder that the store has lost is downloaded again at once, and a run waits for a folder that it has just downloaded", () => {
    const absent = { checks: true, absent: true, running: false, failures: 1, failure: { code: "weights_missing", text: "Gone." } } as const
    const before = { ...observation(absent), weights: { own: false } }
    assert.deepStrictEqual(
      decide(before, 1_000).actions.map(({ _tag }) => _tag),
      ["ForgetWeights", "EnsureFetch"]
    )
    const own = { ...before, weights: { own: true }, blockedSince: 5_000 }
    const soon = decide(own, 6_000)
    assert.deepStrictEqual([soon.actions, soon.requeueAt, soon.message], [[], 5_000 + imageDeadline, "The engine cannot use its weights yet: Gone."])
    assert.strictEqual(failureOf(decide(own, 5_000 + imageDeadline))?.code, "weights_missing")
  })

  it("no pod is created if its volume is smaller than the model", () => {
    const small = { ...podClass, weightsCache: { ...cache, claimName: null, sizeBytes: 1_000 } }
    const decision = decide({ ...observation({}), podClass: small, pod: null }, 1_000)
    assert.strictEqual(failureOf(decision)?.code, "weights_store_full")
    assert.match(decision.message, /host class local allows 1000 B \(1000 bytes\) for the copy on its node \(weightsCache\.sizeBytes\)/)
    assert.deepStrictEqual(
      decide({ ...observation({}), pod: null }, 1_000).actions.map(({ _tag }) => _tag),
      ["EnsurePod"]
    )
  })
})
