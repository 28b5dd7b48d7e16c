import { assert, layer } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { namespace } from "./clusterObjects.ts"
import { chart } from "./NodeCluster.ts"
import { policyHooks } from "./policyHooks.ts"
import { probeEverything } from "./policyProbes.ts"
import { restartCounts, restartPart } from "./restartPrograms.ts"
import { ServedRelease } from "./ServedRelease.ts"
import { stopPods } from "./stopPods.ts"

/** What each program needs, as the chart's page says. Postgres, the hub and hosts of images may be at any address, here that of a pod outside of the release. */
const allowed = {
  server: ["DNS", "hub", "outside 443", "outside 5432", "postgres"],
  gateway: ["DNS", "engine", "outside 443", "outside 5432", "postgres"],
  operator: ["API server", "DNS", "engine", "hub", "outside 443", "outside 5432", "postgres"],
  postgres: [],
  engine: [],
  test: ["DNS", "gateway", "server"],
  migrate: ["DNS", "outside 5432", "postgres"],
  "weights-check": [],
  "clean-weights": ["DNS", "outside 5432", "postgres"],
  download: ["DNS", "hub", "outside 443"]
}

layer(ServedRelease.layer, { timeout: 25 * 60_000, excludeTestServices: true })("the chart on two real nodes", (it) => {
  it.effect("the built image and the embedded Postgres start without a restart, and the model answers at the address of the gateway's Service", () =>
    Effect.gen(function* () {
      const { helm, inference, kube, model } = yield* ServedRelease
      assert.isNotEmpty(wholeOf(yield* ask(inference, model)).text)
      const counts = yield* restartCounts({ kube })
      assert.isNotEmpty(counts)
      assert.deepStrictEqual(
        counts.filter((count) => !count.endsWith(" 0")),
        []
      )
      const pods = yield* kube.list(Pod, { namespace, labelSelector: "app.kubernetes.io/component in (server, gateway)" })
      assert.deepStrictEqual([...new Set(pods.map(({ spec }) => spec?.nodeName))].sort(), ["node-0", "node-1"])
      assert.match(yield* helm("test", "seatrial", "--timeout", "5m"), /Phase:\s+Succeeded/)
    })
  )

  it.effect("network policies leave each program the connections that it needs, in and out, and no others", () =>
    Effect.gen(function* () {
      const cluster = yield* ServedRelease
      yield* policyHooks(cluster)
      const { outside = [], ...reached } = yield* probeEverything(cluster)
      assert.deepStrictEqual(reached, allowed)
      assert.sameMembers(
        outside.filter((name) => !name.startsWith("outside")),
        ["DNS", "API server", "gateway", "gateway metrics", "hub", "kubelet", "operator metrics", "server", "server metrics"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("every program ends with exit code 0 when its pod is stopped, and the model answers again afterwards", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const codes = yield* Effect.forEach(["server", "gateway", "operator", "postgres"], (program) =>
        stopPods(release, `app.kubernetes.io/component=${program}`)
      )
      const engine = yield* stopPods(release, "seatrial.dev/role=engine")
      assert.deepStrictEqual(codes.flat(), ["server=0", "server=0", "gateway=0", "gateway=0", "operator=0", "operator=0", "postgres=0"])
      assert.deepStrictEqual(engine, ["engine=0"])
      for (const program of ["server", "gateway", "operator"]) yield* release.kubectl(["rollout", "status", `deployment/seatrial-${program}`, "--timeout=300s"])
      yield* eventually("the model answers again", ask(release.inference, release.model), ({ status }) => status === 200)
    })
  )

  it.effect("no answer is lost and no container restarts when kubelet and containerd of each node are killed", () =>
    Effect.gen(function* () {
      const release = yield* ServedRelease
      const before = yield* restartCounts(release)
      const stop = yield* keepAsking(release.inference, release.model)
      for (const node of release.nodes) {
        yield* restartPart(release, node, node.kubelet)
        yield* restartPart(release, node, node.containerd)
      }
      assert.isAbove((yield* stop).length, 10)
      assert.deepStrictEqual(yield* restartCounts(release), before)
    }).pipe(Effect.scoped)
  )

  it.effect("no answer is lost in an upgrade and a rollback, and a release that is installed again continues with its models", () =>
    Effect.gen(function* () {
      const { addressOf, at, helm, inference, kube, model, valuesFile } = yield* ServedRelease
      const engines = Effect.map(kube.list(Pod, { namespace, labelSelector: "seatrial.dev/role=engine" }), (pods) => pods.map(({ metadata }) => metadata.uid))
      const before = yield* engines
      const stop = yield* keepAsking(inference, model)
      const values = ["--values", valuesFile, "--wait", "--timeout", "6m"]
      yield* helm("upgrade", "seatrial", chart, ...values, "--set", "podAnnotations.version=next")
      yield* helm("rollback", "seatrial", "--wait", "--timeout", "6m")
      assert.isAbove((yield* stop).length, 10)
      yield* helm("uninstall", "seatrial", "--wait", "--timeout", "3m")
      assert.deepStrictEqual(yield* engines, before)
      yield* helm("install", "seatrial", chart, ...values)
      const gateway = at(yield* addressOf("seatrial-gateway"))
      yield* eventually("the model answers again", ask(gateway, model), ({ status }) => status === 200)
      assert.deepStrictEqual(yield* engines, before)
    }).pipe(Effect.scoped)
  )
})
