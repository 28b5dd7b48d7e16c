import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Pod } from "@seatrial/kube"
import { Equal, Schema } from "effect"
import { enginePod } from "../../src/apply/engineObjects.ts"
import { gpusOf } from "../../src/gather/GpuLedger.ts"
import { keptDeployment, keptPod } from "../../src/gather/kept.ts"
import { podSeen } from "../../src/gather/podSeen.ts"
import type { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { podClass, revision, run } from "../observations.ts"

describe("what the watches' copies keep", () => {
  it("is all of an engine's pod that is asked of it, and less than half of its text", () => {
    const engine = engineFor("reference")
    assert.isDefined(engine)
    const settings = { namespace: "seatrial", fetchImage: "seatrial:1", pullSecrets: [] }
    const made = { ...enginePod({ run, revision, podClass, engine, settings, weightsClaim: "weights" }) }
    const status = {
      phase: "Running",
      podIP: "10.0.0.1",
      conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: [{ name: "engine", ready: true, restartCount: 1 }]
    }
    const whole = Schema.decodeUnknownSync(Pod.schema)({ ...made, status })
    const kept = keptPod(whole)
    assert.deepStrictEqual(podSeen(kept, undefined), podSeen(whole, undefined))
    assert.strictEqual(gpusOf(kept, podClass.gpuResource), gpusOf(whole, podClass.gpuResource))
    assert.isAbove(gpusOf(kept, podClass.gpuResource), 0)
    assert.deepStrictEqual(
      kept.spec?.volumes?.map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName),
      ["weights"]
    )
    assert.isBelow(JSON.stringify(kept).length, JSON.stringify(whole).length / 2)
  })

  it("is all of a deployment, its status read anew for each who asks", () => {
    const deployment: ModelDeployment = { metadata: { name: "tiny" }, spec: { source: { repo: "a/b" } }, status: { phase: "screening", message: "Reads it." } }
    const kept = keptDeployment(deployment)
    assert.isTrue(Equal.equals({ ...kept }, deployment))
    assert.notStrictEqual(kept.status, kept.status)
    assert.strictEqual(keptDeployment({ metadata: { name: "tiny" }, spec: { source: { repo: "a/b" } } }).status, undefined)
  })
})
