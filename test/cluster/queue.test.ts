import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { objectsOfRuns } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { source } from "../e2e/Served.ts"
import { kueueStandIn } from "./kueueStandIn.ts"
import { startRealCluster } from "./RealCluster.ts"
import { simulatedHostClass } from "./simulatedHostClass.ts"
import { startProduct } from "./startProduct.ts"

/** Kueue cannot be installed here: the test replaces it, with the objects and fields that Kueue uses. Its quota, order and preemption are not tried. */
it.live(
  "on a real control plane an engine waits in a Kueue queue with the queue's message, starts when it is admitted, waits again after an eviction, and leaves nothing if its run is cancelled",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const { command, kube, namespace } = cluster
      const kueue = yield* kueueStandIn(cluster, "gpus")
      // Engines of the second never start, since their image cannot be had.
      for (const hostClass of [
        simulatedHostClass("queued", { queueName: "gpus", drainSeconds: 2 }),
        simulatedHostClass("unpullable", { queueName: "gpus", image: "nowhere:1" })
      ])
        yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(hostClass) })
      const { caller, startOperator } = yield* startProduct(cluster)
      const operator = yield* startOperator()
      const serving = { host_class: "queued", max_context: 512 }
      yield* eventually("the host class is known", caller.call("POST", "/v1/deployment-previews", { source, serving }), ({ text }) =>
        text.includes('"derived"')
      )
      const statusAt = (id: string, path: string) =>
        command("kubectl", ["get", "mdep", id.replaceAll("_", "-"), `--namespace=${namespace}`, "--ignore-not-found", "-o", `jsonpath={.status.${path}}`])
      const engineOf = (id: string) =>
        Effect.map(kube.list(Pod, { namespace, labelSelector: `seatrial.dev/deployment=${id},seatrial.dev/role=engine` }), ([pod]) => pod)
      const heldBack = Effect.fnUntraced(function* (id: string) {
        yield* caller.until(id, "is in the queue", ({ status }) => status === "queued").pipe(Effect.tapCause(() => Effect.logError(operator.output())))
        const pod = yield* eventually("its pod is held back", engineOf(id), (found) => (found?.spec?.schedulingGates ?? []).length > 0)
        assert.strictEqual(pod?.metadata.labels?.["kueue.x-k8s.io/queue-name"], "gpus")
        assert.isUndefined(pod?.spec?.nodeName)
        return pod?.metadata ?? { name: "" }
      })

      const first = yield* caller.deploy({ source, serving })
      const held = yield* heldBack(first.id)
      yield* eventually("it names the queue", statusAt(first.id, "message"), (message) => message.includes("Kueue's queue gpus"))
      // GPUs are free: it is the queue that it waits for. What the queue says comes later, and changes, without a change of the pod.
      yield* kueue.says(held, "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu, 1 more needed")
      yield* eventually("it says what the queue says", statusAt(first.id, "message"), (message) => message.includes("insufficient unused quota"))
      assert.strictEqual(yield* statusAt(first.id, "queue.waitsFor"), "Capacity")
      yield* kueue.admits(held)
      const ended = yield* caller.finished(first.id).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      const phases = ended.phases.map(({ status }) => status)
      assert.deepStrictEqual(phases.slice(phases.indexOf("queued")).slice(0, 3), ["queued", "provisioning", "booting"])
      assert.isAbove(wholeOf(yield* ask(caller, ended.model)).usage.completion_tokens, 0)

      // What serves is evicted: it says that it does not serve and why, and serves again once its next pod is let go.
      const served = yield* engineOf(first.id)
      yield* kueue.evicts(served?.metadata ?? { name: "" }, "Preempted to accommodate a workload of higher priority")
      const again = yield* eventually("its next pod is held back", engineOf(first.id), (pod) => pod !== undefined && pod.metadata.uid !== served?.metadata.uid)
      yield* kueue.says(again?.metadata ?? { name: "" }, "couldn't assign flavors to pod set main: its quota went to another")
      yield* eventually("it says in the queue's words why it does not serve", statusAt(first.id, "message"), (message) =>
        message.startsWith("The engine is not ready: It waits in Kueue's queue: couldn't assign flavors")
      )
      assert.strictEqual(yield* statusAt(first.id, "conditions[?(@.type=='Ready')].status"), "False")
      assert.strictEqual((yield* caller.call("POST", "/v1/chat/completions", { model: ended.model, messages: [{ role: "user", content: "Hi" }] })).status, 503)
      yield* kueue.admits(again?.metadata ?? { name: "" })
      const ready = eventually("it is ready again", statusAt(first.id, "conditions[?(@.type=='Ready')].status"), (status) => status === "True")
      yield* ready.pipe(Effect.tapCause(() => Effect.logError(operator.output())))

      // A pod that is evicted before it is ready returns to the queue.
      const second = yield* caller.deploy({ source, model_name: "second", serving: { ...serving, host_class: "unpullable" } })
      const admitted = yield* heldBack(second.id)
      yield* kueue.admits(admitted)
      yield* caller.until(second.id, "is provisioned", ({ status }) => status === "provisioning")
      yield* kueue.evicts(admitted, "Preempted to accommodate a workload of higher priority")
      const back = yield* caller.until(second.id, "is in the queue again", ({ phases }) => phases.filter(({ status }) => status === "queued").length === 2)
      assert.strictEqual(back.phases.at(-1)?.status, "queued")
      yield* heldBack(second.id)
      yield* eventually("it names the queue again", statusAt(second.id, "message"), (message) => message.includes("Kueue's queue gpus"))
      assert.strictEqual((yield* caller.call("POST", `/v1/deployments/${second.id}/cancel`)).status, 200)
      yield* eventually("only the engine that serves is left", objectsOfRuns(kube), (objects) => objects.join() === `Pod ${first.id}`)
    }).pipe(Effect.scoped),
  1_200_000
)
