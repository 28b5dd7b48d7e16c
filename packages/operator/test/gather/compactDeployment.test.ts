import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Pod } from "@seatrial/kube"
import { Equal, Schema } from "effect"
import { rootCause } from "../../src/apply/rootCause.ts"
import { gpusOf } from "../../src/gather/capacity/takenGpus.ts"
import { compactDeployment } from "../../src/gather/compactDeployment.ts"
import { copiesInUse } from "../../src/gather/copiesInUse.ts"
import { observePod } from "../../src/gather/observePod.ts"
import { enginePod } from "../../src/objects/enginePod.ts"
import type { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { WatchedBudget, WatchedJob, WatchedPod } from "../../src/resources/watched.ts"
import { podClass, revision, run } from "../observations.ts"

describe("the copies of the watches", () => {
  it("hold all fields of an engine's pod that the operator reads, in less than half of its text", () => {
    const engine = engineFor("reference")
    assert.isDefined(engine)
    const settings = { namespace: "seatrial", fetchImage: "seatrial:1", pullSecrets: [] }
    const createdPod = { ...enginePod({ run, revision, podClass, engine, settings, weightsClaim: "weights" }) }
    const status = {
      phase: "Running",
      podIP: "10.0.0.1",
      conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: [
        {
          name: "engine",
          ready: false,
          started: true,
          restartCount: 1,
          imageID: "engine@sha256:1",
          state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
          lastState: { terminated: { exitCode: 1, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:00:00Z" } }
        }
      ]
    }
    const fullPod = Schema.decodeUnknownSync(Pod.schema)({ ...createdPod, status })
    const compact = Schema.decodeUnknownSync(WatchedPod.schema)(fullPod)
    assert.deepStrictEqual(rootCause([compact], false), rootCause([fullPod], false))
    assert.isDefined(rootCause([compact], false))
    assert.strictEqual(copiesInUse([compact], "weights", 0), copiesInUse([fullPod], "weights", 0))
    assert.deepStrictEqual(observePod(compact, undefined), observePod(fullPod, undefined))
    assert.strictEqual(gpusOf(compact, podClass.gpuResource), gpusOf(fullPod, podClass.gpuResource))
    assert.isAbove(gpusOf(compact, podClass.gpuResource), 0)
    assert.deepStrictEqual(
      compact.spec?.volumes?.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []),
      ["weights"]
    )
    assert.isBelow(JSON.stringify(compact).length, JSON.stringify(fullPod).length / 2)
  })

  it("hold only those fields of a pod, a Job and a disruption budget", () => {
    const metadata = {
      name: "a",
      namespace: "seatrial",
      uid: "1",
      resourceVersion: "2",
      labels: { "seatrial.dev/role": "engine", team: "x" },
      annotations: { "seatrial.dev/made-from": "y", "cni.example/status": "long" },
      ownerReferences: []
    }
    const { labels: _, annotations: __, ownerReferences: ___, ...named } = metadata
    const watchedMetadata = { ...named, labels: { "seatrial.dev/role": "engine" }, annotations: { "seatrial.dev/made-from": "y" } }
    const conditions = [{ type: "Complete", status: "True" }]
    const container = { name: "engine", image: "e:1" }
    const spec = { nodeName: "n", containers: [{ ...container, env: [{ name: "A", value: "b" }], volumeMounts: [] }], dnsPolicy: "ClusterFirst" }
    assert.deepStrictEqual(Schema.decodeUnknownSync(WatchedPod.schema)({ metadata, spec, status: { phase: "Running", qosClass: "Burstable" } }), {
      metadata: watchedMetadata,
      spec: { nodeName: "n", containers: [container] },
      status: { phase: "Running" }
    })
    const job = { metadata, spec: { template: { spec: { containers: [] } } }, status: { succeeded: 1, conditions } }
    assert.deepStrictEqual(Schema.decodeUnknownSync(WatchedJob.schema)(job), { metadata: watchedMetadata, status: { conditions } })
    assert.deepStrictEqual(Schema.decodeUnknownSync(WatchedBudget.schema)({ metadata, spec: { minAvailable: 1, more: 1 }, status: {} }), {
      metadata: named,
      spec: { minAvailable: 1 }
    })
  })

  it("hold all of a deployment, and parse its status at each read", () => {
    const deployment: ModelDeployment = { metadata: { name: "tiny" }, spec: { source: { repo: "a/b" } }, status: { phase: "screening", message: "Reads it." } }
    const compact = compactDeployment(deployment)
    assert.isTrue(Equal.equals({ ...compact }, deployment))
    assert.notStrictEqual(compact.status, compact.status)
    assert.strictEqual(compactDeployment({ metadata: { name: "tiny" }, spec: { source: { repo: "a/b" } } }).status, undefined)
  })
})
