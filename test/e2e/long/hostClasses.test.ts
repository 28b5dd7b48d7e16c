import { assert, it } from "@effect/vitest"
import { DeploymentId, DeploymentProgress } from "@seatrial/domain"
import { Pod } from "@seatrial/kube"
import { HostClassResource, ModelDeployment, objectName } from "@seatrial/operator"
import { Effect, Option, Schema } from "effect"
import { seatrial } from "../../../packages/cli/test/runCommand.ts"
import { bodyOf, makeCaller } from "../Caller.ts"
import { openCluster, patiently, shortenBenchmark } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { source } from "../Served.ts"

const Preview = Schema.Struct({
  serving: Schema.Struct({ host_class: Schema.String }),
  placement: Schema.Struct({ message: Schema.NullOr(Schema.String) })
})
const namespace = "seatrial"

/** Occupies all GPUs of the first host class, like another program in the cluster. */
const occupant = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "occupant", namespace },
  spec: { nodeName: "sim-small-0", containers: [{ name: "occupant", image: "occupant:1", resources: { limits: { "nvidia.com/gpu": "4" } } }] }
}

it.live(
  "a model is placed on the second of two host classes if the first is full, and a run that waits for the first reports it",
  () =>
    Effect.gen(function* () {
      const system = yield* startSystem(yield* makeStateFolder, { SEATRIAL_DURABLE: "false" })
      const { address, api_key, kubeconfig } = system.state
      const caller = makeCaller(address, api_key)
      const kube = yield* openCluster(kubeconfig)
      yield* shortenBenchmark(kube, "sim-large")
      yield* patiently(kube.create(Pod, occupant))
      const preview = (host_class: unknown) =>
        Effect.map(caller.call("POST", "/v1/deployment-previews", { source, serving: { host_class, max_context: 512 } }), (answer) => bodyOf(Preview, answer))
      // Requests to the API are rate limited, those to the cluster are not.
      const classObject = Effect.map(patiently(kube.get(HostClassResource, "sim-small")), Option.getOrUndefined)
      yield* eventually("the operator has counted the class's GPUs", classObject, (object) => object?.status?.freeGpus === 0)
      const full = yield* eventually("a preview knows that the class is full", preview("sim-small"), ({ placement }) => placement.message !== null)
      assert.strictEqual(
        full.placement.message,
        "A deployment would wait for GPUs of class sim-small (0 of 4 free). Host class sim-large has 4 free GPUs, and the model fits there. To use this class, deploy with `host_class: [sim-small, sim-large]` or `host_class: any`."
      )
      const either = ["sim-small", "sim-large"]
      assert.deepStrictEqual(yield* preview(either), { serving: { host_class: "sim-large" }, placement: { message: null } })

      const waits = yield* caller.deploy({ source, model_name: "waits", serving: { host_class: "sim-small", max_context: 512 } })
      const message =
        "The deployment waits for 1 GPU of Seatrial-Sim-1GiB: first in the queue. Class sim-small has 0 of 4 GPUs free. Host class sim-large has 4 free GPUs, and the model fits there. To use this class, cancel this deployment and deploy again with `host_class: [sim-small, sim-large]` or `host_class: any`."
      const progress = caller.read(`/v1/deployments/${waits.id}/progress`, DeploymentProgress)
      yield* eventually("the queued run names the other class", progress, (now) => now.message === message)
      const objectOf = (id: string) =>
        Effect.map(patiently(kube.get(ModelDeployment, objectName(Schema.decodeUnknownSync(DeploymentId)(id)), namespace)), Option.getOrUndefined)
      yield* eventually("its object says the same", objectOf(waits.id), (object) => object?.status?.message === message)
      const environment = { SEATRIAL_ADDRESS: address, SEATRIAL_API_KEY: api_key }
      assert.include((yield* seatrial(["status", waits.id], environment)).out, "deploy again with `host_class: [sim-small, sim-large]` or `host_class: any`")

      const placed = yield* caller.deploy({ source, model_name: "placed", serving: { host_class: either, max_context: 512 } })
      const detail = yield* caller.finished(placed.id)
      assert.deepStrictEqual([detail.status, detail.failure_detail], ["activated", null])
      assert.deepInclude(detail.revision, { gpu_pool: "Seatrial-Sim-8GiB", gpu_count: 2 })
      const object = yield* eventually("its object shows where it serves", objectOf(placed.id), (found) => found?.status?.phase === "activated")
      assert.deepStrictEqual([object?.spec.serving?.hostClasses, object?.status?.hostClass], [either, "sim-large"])
      assert.strictEqual((yield* caller.deployment(waits.id)).status, "queued")
    }).pipe(Effect.scoped, Effect.orDie),
  600_000
)
