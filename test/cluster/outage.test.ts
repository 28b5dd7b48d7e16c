import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { source } from "../e2e/Served.ts"
import { engineDigest, startRealCluster } from "./RealCluster.ts"
import { simulatedHostClass } from "./simulatedHostClass.ts"
import { startProduct } from "./startProduct.ts"

const product = "Seatrial-Sim-Kept"
const image = "ghcr.io/seatrial/reference-engine:0.1.0"

it.live(
  "on a real control plane a verified revision serves after changes of its host class, is not stopped for unavailable GPUs, and reports an outage",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const { command, namespace } = cluster
      const kubectl = (...args: ReadonlyArray<string>) => command("kubectl", [...args, `--namespace=${namespace}`])
      const patch = (spec: object) => command("kubectl", ["patch", "hostclass", "kept", "--type=merge", "-p", JSON.stringify({ spec })])
      const objectOf = (id: string) => id.replaceAll("_", "-")
      const engineOf = (id: string) => `${objectOf(id)}-engine-0`
      /** The operator makes the object, a moment after the create. */
      const messageOf = (id: string) => Effect.orElseSucceed(kubectl("get", "mdep", objectOf(id), "-o", "jsonpath={.status.message}"), () => "")
      const says = (id: string, what: string) => eventually(`${id} says ${what}`, messageOf(id), (message) => message.includes(what))
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(simulatedHostClass("kept", { gpuPool: product, image })) })
      const { caller, startOperator } = yield* startProduct(cluster)
      const operator = yield* startOperator()
      const serving = (max_context: number) => ({ host_class: "kept", max_context })
      yield* eventually("the host class is known", caller.call("POST", "/v1/deployment-previews", { source, serving: serving(512) }), ({ text }) =>
        text.includes('"derived"')
      )

      // No node is there yet: it says so, and is no ordinary queue.
      const first = yield* caller.deploy({ source, serving: serving(512) })
      yield* says(first.id, `no node has the class's labels nvidia.com/gpu.product=${product}`).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
      yield* cluster.startNode("kept-0", product)
      const { model, model_id, status } = yield* caller.finished(first.id)
      assert.strictEqual(status, "activated")

      // Another image in the class is for later deployments: what serves comes back with its own.
      yield* patch({ runtimes: [{ runtime: "reference", image: "nowhere.example/never-tried:1" }] })
      const uid = kubectl("get", "pod", engineOf(first.id), "-o", "jsonpath={.metadata.uid}")
      const before = yield* uid
      yield* kubectl("delete", "pod", engineOf(first.id), "--force", "--grace-period=0")
      yield* eventually(
        "another engine has started",
        Effect.orElseSucceed(uid, () => before),
        (now) => now !== before && now !== ""
      )
      assert.strictEqual(
        yield* kubectl("get", "pod", engineOf(first.id), "-o", "jsonpath={.spec.containers[0].image}"),
        `ghcr.io/seatrial/reference-engine@${engineDigest}`
      )
      yield* eventually("it answers", ask(caller, model), ({ status }) => status === 200)
      const recordedEvents = kubectl("get", "events", "-o", 'jsonpath={range .items[?(@.involvedObject.kind=="ModelDeployment")]}{.type} {.reason}{"\\n"}{end}')
      yield* eventually(
        "the outage and its end are reported",
        recordedEvents,
        (events) => events.includes("Warning EngineNotReady") && events.includes("Normal Serving")
      )
      // The operator writes the status after the event.
      yield* eventually("it is shown as ready", kubectl("get", "mdep", objectOf(first.id)), (row) => /READY[\s\S]+activated\s+True/.test(row))

      // Its node takes no new pods: what serves is not stopped for a place that the new one could not have.
      yield* command("kubectl", ["cordon", "kept-0"])
      yield* patch({ rollout: "replace" })
      const second = yield* caller.deploy({ model_id, serving: serving(513) })
      yield* says(second.id, "Stopping that revision would not help: its node takes no new pods (cordoned)")
      assert.strictEqual((yield* ask(caller, model)).status, 200)

      // Now it is, for an image that cannot be had; the class is corrected before the engine ever started, and the run goes on with that.
      yield* command("kubectl", ["uncordon", "kept-0"])
      yield* eventually(
        "its image cannot be pulled",
        Effect.orElseSucceed(kubectl("get", "pod", engineOf(second.id), "-o", "jsonpath={.spec.containers[0].image}"), () => ""),
        (found) => found === "nowhere.example/never-tried:1"
      )
      yield* patch({ runtimes: [{ runtime: "reference", image }] })
      const ended = yield* caller.finished(second.id)
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      // At once: a caller that knows of the activation need not wait for the gateway.
      const answer = yield* ask(caller, model)
      assert.strictEqual(answer.status, 200, answer.text)
    }).pipe(Effect.scoped),
  1_200_000
)
