import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect, Fiber } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving, source } from "../e2e/Served.ts"
import { keepStreaming } from "./keepStreaming.ts"
import { startRealCluster } from "./RealCluster.ts"
import { simulatedHostClass } from "./simulatedHostClass.ts"
import { startProduct } from "./startProduct.ts"

it.live(
  "on a real control plane kubectl drain without --force empties a node while a model of two engines moves to another revision, and no request fails",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const { command, kube, namespace } = cluster
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], {
        input: JSON.stringify(simulatedHostClass("sim-small", { bootDeadlineSeconds: 240, drainSeconds: 2 }))
      })
      const { caller, startOperator } = yield* startProduct(cluster)
      const operator = yield* startOperator()
      const shown = (run: string) =>
        Effect.map(patiently(kube.list(Pod, { namespace, labelSelector: `seatrial.dev/deployment=${run}` })), (pods) =>
          pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ spec }) => spec?.nodeName ?? "none")
        )
      const activated = Effect.fnUntraced(function* (run: string) {
        const ended = yield* caller.finished(run)
        if (ended.status !== "activated") yield* Effect.logError(operator.output())
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        return ended
      })
      yield* eventually("the host class is known", caller.call("POST", "/v1/deployment-previews", { source, serving }), ({ text }) =>
        text.includes('"derived"')
      )

      const first = yield* caller.deploy({ source, serving })
      const { model, model_id } = yield* activated(first.id)
      assert.strictEqual((yield* caller.call("PUT", `/v1/models/${model_id}/scaling`, { replicas: 2 })).status, 200)
      yield* eventually("an engine runs on each node", shown(first.id), (nodes) => nodes.toSorted().join() === "sim-0,sim-1")
      const asks = yield* keepStreaming(caller, model)

      const second = yield* caller.deploy({ model_id, serving: { ...serving, max_context: serving.max_context - 1 } })
      yield* caller.until(second.id, "takes over", ({ status }) => status === "activating" || status === "activated")
      assert.isAbove((yield* shown(first.id)).length, 0, "the earlier revision still has engines")
      // The node of an engine of the earlier revision.
      const drained = (yield* shown(first.id)).at(0) ?? "sim-0"
      const drain = yield* Effect.forkScoped(command("kubectl", ["drain", drained, "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=300s"]))
      yield* Fiber.join(drain).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
      yield* activated(second.id)
      const free = drained === "sim-0" ? "sim-1" : "sim-0"
      yield* eventually("both engines of the new revision run on the node that is left", shown(second.id), (nodes) => nodes.join() === `${free},${free}`)
      yield* eventually("the earlier revision has no engine", shown(first.id), (nodes) => nodes.length === 0)
      const { answered, waits } = yield* asks.stop
      assert.strictEqual(waits, 0)
      assert.isAbove(answered, 10)
    }).pipe(Effect.scoped),
  1_200_000
)
