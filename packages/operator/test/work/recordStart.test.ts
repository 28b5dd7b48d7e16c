import { assert, describe, it } from "@effect/vitest"
import { engineFor, timeOfHit } from "@seatrial/engines"
import type { Pod } from "@seatrial/kube"
import { startOf } from "../../src/work/recordStart.ts"

const at = (seconds: number) => new Date(Date.UTC(2026, 10, 21, 8, 0, seconds)).toISOString()
const engine = (seconds: number) => ({ name: "engine", ready: true, restartCount: 0, state: { running: { startedAt: at(seconds) } } })
const conditions = (ready: number) => [
  { type: "PodScheduled", status: "True", lastTransitionTime: at(0) },
  { type: "Ready", status: "True", lastTransitionTime: at(ready) }
]
const first = (name: string, from: number, to: number) => ({
  name,
  ready: true,
  restartCount: 0,
  state: { terminated: { exitCode: 0, startedAt: at(from), finishedAt: at(to) } }
})
const pod = (status: NonNullable<Pod["status"]>): Pod => ({ metadata: { name: "dep-1", namespace: "n", uid: "u" }, status })

describe("a start of an engine", () => {
  it("is measured in its parts: image, weights to the node, loading, warming up, first token", () => {
    const copied = pod({ conditions: conditions(55), initContainerStatuses: [first("copy-weights", 2, 32)], containerStatuses: [engine(40)] })
    assert.deepStrictEqual(startOf(copied, Date.parse(at(48)), 0.25), {
      podUid: "u",
      kind: "cold",
      parts: { image_pull: 8, weights_to_node: 30, process_to_loaded: 8, loaded_to_ready: 7, first_token: 0.25 }
    })
  })

  it("is warm if image and weights were on the node, and omits unknown parts", () => {
    const warm = pod({ conditions: conditions(20), containerStatuses: [engine(2)] })
    assert.deepStrictEqual(startOf(warm, null, null), {
      podUid: "u",
      kind: "warm",
      parts: { image_pull: 2, weights_to_node: null, process_to_loaded: null, loaded_to_ready: null, first_token: null }
    })
    // A check of the weights in the store transfers no weights.
    const checked = pod({ conditions: conditions(20), initContainerStatuses: [first("check-weights", 1, 9)], containerStatuses: [engine(10)] })
    assert.deepInclude(startOf(checked, null, null).parts, { image_pull: 1, weights_to_node: null })
  })

  it("has its weights loaded at the last matching line of its log, by Kubernetes' time stamps", () => {
    const sign = engineFor("vllm")?.weightsLoaded ?? ""
    const log = [
      "2026-11-21T08:00:47.100000000Z (Worker_TP0 pid=3) INFO 11-21 08:00:47 [model_runner.py:1] Model loading took 7.55 GiB memory and 9.1 seconds",
      "2026-11-21T08:00:48.250000000Z (Worker_TP1 pid=4) INFO 11-21 08:00:48 [model_runner.py:1] Model loading took 7.6 GiB memory and 9.5 seconds",
      "2026-11-21T08:00:50.000000000Z (EngineCore pid=2) INFO something else"
    ].join("\n")
    assert.strictEqual(timeOfHit(log, sign), Date.UTC(2026, 10, 21, 8, 0, 48, 250))
    assert.isNull(timeOfHit(log.replaceAll(/^\S+ /gm, ""), sign))
    assert.isNull(timeOfHit("", sign))
  })
})
