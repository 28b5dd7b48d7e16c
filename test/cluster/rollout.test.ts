import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { source } from "../e2e/Served.ts"
import { isStarting, keepStreaming } from "./keepStreaming.ts"
import { engineDigest, startRealCluster } from "./RealCluster.ts"
import { simulatedHostClass } from "./simulatedHostClass.ts"
import { startProduct } from "./startProduct.ts"

const product = "Seatrial-Sim-Single"

const hostClass = simulatedHostClass("single", { gpuPool: product, bootDeadlineSeconds: 240, drainSeconds: 2 })

it.live(
  "on a real control plane a roll-out next to or instead of the serving revision loses no request, a model survives its node, and an unused model releases its GPUs",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const { command, namespace } = cluster
      const kubectl = (...args: ReadonlyArray<string>) => command("kubectl", [...args, `--namespace=${namespace}`])
      const objectOf = (id: string) => id.replaceAll("_", "-")
      const engineOf = (id: string) => `${objectOf(id)}-engine-0`
      /** The operator makes the object, a moment after the create. */
      const messageOf = (id: string) => Effect.orElseSucceed(kubectl("get", "mdep", objectOf(id), "-o", "jsonpath={.status.message}"), () => "")
      const says = (id: string, what: string) => eventually(`${id} says ${what}`, messageOf(id), (message) => message.includes(what))

      // From now on the API server refuses pods that are not `restricted`.
      yield* kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(hostClass) })
      const stopFirst = yield* cluster.startNode("single-0", product)

      const { caller, startOperator } = yield* startProduct(cluster)
      const operator = yield* startOperator()
      const serving = (max_context: number) => ({ host_class: "single", max_context })
      yield* eventually("the host class is known", caller.call("POST", "/v1/deployment-previews", { source, serving: serving(512) }), ({ text }) =>
        text.includes('"derived"')
      )
      const activated = Effect.fnUntraced(function* (id: string) {
        const ended = yield* caller.finished(id)
        if (ended.status !== "activated") yield* Effect.logError(operator.output())
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        return ended
      })

      const first = yield* caller.deploy({ source, serving: serving(512) })
      const { model, model_id } = yield* activated(first.id)
      const asks = yield* keepStreaming(caller, model)
      const redeploy = (max_context: number) => caller.deploy({ model_id, serving: serving(max_context) })

      // A drained node does not take away what serves.
      yield* eventually("there is a budget", kubectl("get", "pdb", objectOf(first.id), "-o", "jsonpath={.status.currentHealthy}"), (healthy) => healthy === "1")
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: engineOf(first.id), namespace } }
      const refused = yield* command("kubectl", ["create", "--raw", `/api/v1/namespaces/${namespace}/pods/${engineOf(first.id)}/eviction`, "-f", "-"], {
        input: JSON.stringify(eviction)
      }).pipe(Effect.flip)
      assert.include(refused.message, "disruption budget")
      const drain = Effect.flip(command("kubectl", ["drain", "single-0", "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=1s"]))
      assert.include((yield* drain).message, "disruption budget")
      yield* command("kubectl", ["uncordon", "single-0"])

      // One GPU, and it serves: the new revision waits for another, and says so.
      const second = yield* redeploy(513)
      yield* caller.until(second.id, "is in the queue", ({ status }) => status === "queued")
      yield* says(second.id, "so the new revision waits for other free GPUs")
      const stopSecond = yield* cluster.startNode("single-1", product)
      yield* activated(second.id)
      yield* eventually("the replaced engine is gone", kubectl("get", "pods", "-o", "name"), (pods) => !pods.includes(engineOf(first.id)))
      const surged = yield* asks.stop
      assert.strictEqual(surged.waits, 0)
      assert.isAbove(surged.answered, 10)
      assert.notInclude(yield* kubectl("get", "pdb", "-o", "name"), objectOf(first.id))

      // Its node dies: the engine starts on the other one, and the model is not blamed.
      yield* stopSecond
      yield* eventually(
        "the node does not respond",
        kubectl("get", "node", "single-1", "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'),
        (status) => status === "Unknown"
      )
      yield* eventually(
        "the engine runs on another node",
        kubectl("get", "pods", "-l", `seatrial.dev/deployment=${second.id}`, "-o", "jsonpath={.items[*].spec.nodeName}"),
        (node) => node === "single-0"
      )
      assert.strictEqual((yield* caller.deployment(second.id)).status, "activated")
      // It is the tried image, even if its name has moved.
      const imagesOf = (path: string) => kubectl("get", "pods", "-l", `seatrial.dev/deployment=${second.id}`, "-o", `jsonpath={.items[*]${path}}`)
      assert.strictEqual(yield* imagesOf(".spec.containers[0].image"), `ghcr.io/seatrial/reference-engine@${engineDigest}`)
      assert.strictEqual(yield* kubectl("get", "mdep", objectOf(second.id), "-o", "jsonpath={.status.engineDigest}"), engineDigest)

      // No spare GPU again; the class now says that what serves gives its own up. A cancel brings it back.
      yield* command("kubectl", ["patch", "hostclass", "single", "--type=merge", "-p", '{"spec":{"rollout":"replace"}}'])
      const later = yield* keepStreaming(caller, model)
      const answersOnceMore = (what: string) =>
        Effect.suspend(() => {
          const before = later.counts.answered
          const answered = eventually(
            what,
            Effect.sync(() => later.counts.answered),
            (count) => count > before
          )
          return later.whileAlive(answered).pipe(Effect.tapCause(() => Effect.logError(`${JSON.stringify(later.counts)} ${operator.output()}`)))
        })
      yield* answersOnceMore("the engine answers on its new node")
      const third = yield* redeploy(514)
      yield* caller.until(third.id, "is past the queue", ({ status }) => ["booting", "checking", "measuring", "benchmarking"].includes(status))
      assert.notInclude(yield* kubectl("get", "pods", "-o", "name"), engineOf(second.id))
      assert.strictEqual((yield* caller.call("POST", `/v1/deployments/${third.id}/cancel`)).status, 200)
      yield* answersOnceMore("what served is back")
      const fourth = yield* caller.deploy({ model_id, serving: { ...serving(515), hold_seconds: 0 } })
      const ended = yield* activated(fourth.id)
      assert.isTrue(ended.phases.every(({ status }) => status !== "queued"))
      yield* answersOnceMore("the new one answers")
      // No stream broke off in any of it, and who asked while there was no engine waited for one: the client would have died of anything else.
      yield* later.stop

      // Without requests its GPU is released, and the next request starts the engine again.
      yield* eventually("the idle engine is gone", kubectl("get", "pods", "-o", "name"), (pods) => !pods.includes("engine"))
      yield* says(fourth.id, "Idle")
      const woke = yield* ask(caller, model)
      if (woke.status !== 200) assert.isTrue(isStarting(woke))
      yield* eventually("the engine is back", ask(caller, model), ({ status }) => status === 200)
      assert.strictEqual((yield* caller.deployment(fourth.id)).status, "activated")
      yield* stopFirst
    }).pipe(Effect.scoped),
  1_200_000
)
