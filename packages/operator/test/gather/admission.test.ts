import { assert, describe, it } from "@effect/vitest"
import { KubeClient, KubeError } from "@seatrial/kube"
import { Effect, Layer, Schema } from "effect"
import { admissionOf } from "../../src/gather/admission.ts"

const waits = { type: "QuotaReserved", status: "False", message: "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu" }
const error = (reason: KubeError["reason"], status: number) => new KubeError({ reason, message: reason, status })

/** Reads from a cluster whose Kueue serves these versions. `answers`: the conditions of the pod's workload. */
const ask = (served: ReadonlyArray<string>, answers: ReadonlyArray<object>, refusal: KubeError | null = null) => {
  const requests: Array<string> = []
  const kube = Layer.mock(KubeClient)({
    list: (resource, { labelSelector = "", namespace = "" }) => {
      requests.push(`${resource.version} ${namespace} ${labelSelector}`)
      if (refusal !== null) return Effect.fail(refusal)
      if (!served.includes(resource.version)) return Effect.fail(error("NotFound", 404))
      return Effect.succeed([Schema.decodeUnknownSync(resource.schema)({ metadata: { name: "pod-w" }, status: { conditions: answers } })])
    }
  })
  return Effect.map(Effect.provide(admissionOf("u1", "seatrial"), kube), (said) => ({ said, requests }))
}
const question = (version: string) => `${version} seatrial kueue.x-k8s.io/job-uid=u1`

describe("Kueue's reason for holding a pod back", () => {
  it.effect("is read from its workload, in either version of Kueue's API", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ask(["v1beta2", "v1beta1"], [waits]), { said: waits.message, requests: [question("v1beta2")] })
      assert.deepStrictEqual(yield* ask(["v1beta1"], [waits]), { said: waits.message, requests: [question("v1beta2"), question("v1beta1")] })
    })
  )

  it.effect("is none if the pod is admitted, if there is no Kueue, and if the operator may not read it, which is tried once", () =>
    Effect.gen(function* () {
      assert.isNull((yield* ask(["v1beta2"], [{ ...waits, status: "True" }])).said)
      assert.isNull((yield* ask([], [waits])).said)
      assert.deepStrictEqual(yield* ask(["v1beta2"], [waits], error("Denied", 403)), { said: null, requests: [question("v1beta2")] })
    })
  )
})
