import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { Effect, Schema } from "effect"
import { bodyOf } from "../e2e/Caller.ts"
import { ask, wholeOf } from "../e2e/chat.ts"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving, source } from "../e2e/Served.ts"
import { askThroughout } from "../faults/askThroughout.ts"
import { startGateway } from "../faults/startGateway.ts"
import { freePort } from "../process/freePort.ts"
import { startExternalMetrics } from "./externalMetrics.ts"
import { startRealCluster } from "./RealCluster.ts"
import { simulatedHostClass } from "./simulatedHostClass.ts"
import { startProduct } from "./startProduct.ts"

const Scale = Schema.fromJsonString(
  Schema.Struct({
    spec: Schema.Struct({ replicas: Schema.Int }),
    status: Schema.Struct({ replicas: Schema.Int, selector: Schema.String })
  })
)
const Refused = Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) })
/** The load of the only model: the sum of two gauges of a gateway, or 0, as the query of the guide. */
const loadOf = (port: number) =>
  Effect.promise(async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const values = text.matchAll(/^seatrial_gateway_(?:running|queued)_requests\{model="local\/tiny"\} (\d+)$/gmu)
    return [...values].reduce((sum, [, value]) => sum + Number(value), 0)
  })

/** Two requests for each engine. */
const autoscaler = {
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name: "tiny", namespace: "seatrial" },
  spec: {
    scaleTargetRef: { apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", name: "tiny" },
    minReplicas: 1,
    maxReplicas: 3,
    metrics: [{ type: "External", external: { metric: { name: "tiny_load" }, target: { type: "AverageValue", averageValue: "2" } } }],
    behavior: { scaleDown: { stabilizationWindowSeconds: 10 } }
  }
}

const Listed = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

it.live(
  "on a real control plane kubectl scale and a HorizontalPodAutoscaler with the gateway's load change the number of engines, start no trial and fail no request, engines spread over zones and nodes, and the API refuses another number",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const metricsPort = yield* freePort
      const { command, kube, namespace } = cluster
      const within = `--namespace=${namespace}`
      const object = {
        apiVersion: "seatrial.dev/v1alpha1",
        kind: "ModelDeployment",
        metadata: { name: "tiny", namespace },
        spec: { source: { repo: source.repo }, serving: { hostClass: serving.host_class, maxContext: serving.max_context } }
      }
      for (const each of [simulatedHostClass("sim-small", { bootDeadlineSeconds: 180, drainSeconds: 2 }), object])
        yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(each) })
      yield* cluster.startNode("sim-2")
      for (const [node, zone] of [
        ["sim-0", "a"],
        ["sim-1", "b"],
        ["sim-2", "a"]
      ] as const)
        yield* command("kubectl", ["label", "node", node, `topology.kubernetes.io/zone=${zone}`])
      const { caller, startOperator, state } = yield* startProduct(cluster)
      const operator = yield* startOperator({ OPERATOR_ORGANIZATION: "local" })
      const shown = command("kubectl", ["get", "mdep", "tiny", within, "-o", "jsonpath={.status.desiredReplicas} {.status.replicas} {.status.readyReplicas}"])
      const numbers = (text: string) =>
        eventually(`it shows ${text}`, shown, (current) => current === text).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
      yield* numbers("1 1 1")

      yield* command("kubectl", ["scale", "mdep", "tiny", within, "--replicas=2"])
      yield* numbers("2 2 2")
      yield* command("kubectl", ["wait", "--for=condition=ScalingLimited=false", "mdep/tiny", within, "--timeout=60s"])
      const path = `/apis/seatrial.dev/v1alpha1/namespaces/${namespace}/modeldeployments/tiny/scale`
      const scale = Schema.decodeUnknownSync(Scale)(yield* command("kubectl", ["get", "--raw", path]))
      assert.deepStrictEqual([scale.spec.replicas, scale.status.replicas], [2, 2])
      const nodes = Effect.map(patiently(kube.list(Pod, { namespace, labelSelector: scale.status.selector })), (pods) =>
        pods.map(({ spec }) => spec?.nodeName ?? "none")
      )
      const two = yield* nodes
      assert.deepStrictEqual([two.length, new Set(two.map((node) => node === "sim-1")).size], [2, 2], `two engines in one zone: ${two.join()}`)
      assert.isAbove(wholeOf(yield* ask(caller, "local/tiny")).usage.completion_tokens, 0)
      assert.match(yield* command("kubectl", ["get", "mdep", "tiny", within, "-o", "wide"]), /DESIRED +GRANTED +READY ENGINES.* {2}2 +2 +2 /su)

      const refused = yield* caller.call("PUT", "/v1/models/tiny/scaling", { replicas: 3 })
      assert.deepStrictEqual([refused.status, bodyOf(Refused, refused).error.code], [409, "model_managed"])
      assert.include(bodyOf(Refused, refused).error.message, `kubectl -n ${namespace} scale modeldeployment tiny`)

      yield* command("kubectl", ["scale", "mdep", "tiny", within, "--replicas=1"])
      yield* numbers("1 1 1")
      assert.strictEqual((yield* nodes).length, 1)

      const gateway = yield* startGateway(
        { caller, databaseUrl: state.database_url, encryptionKey: state.encryption_key, apiKey: state.api_key },
        { GATEWAY_METRICS_HOST: "127.0.0.1", GATEWAY_METRICS_PORT: String(metricsPort) }
      )
      yield* startExternalMetrics(cluster, namespace, "tiny_load", loadOf(metricsPort))
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(autoscaler) })
      yield* numbers("1 1 1")
      const failures = yield* Effect.gen(function* () {
        const stop = yield* Effect.all(
          Array.from({ length: 6 }, () => askThroughout(gateway.caller, "local/tiny")),
          { concurrency: "unbounded" }
        )
        yield* numbers("3 3 3")
        assert.strictEqual(new Set(yield* nodes).size, 3)
        // One engine is enough for the last two clients.
        const [last, ...first] = stop
        const ended = yield* Effect.all(first)
        yield* numbers("1 1 1")
        return [...ended, yield* last ?? Effect.die("there are clients")].flatMap(({ failures }) => failures)
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(failures, [])
      const able = ["get", "hpa", "tiny", within, "-o", "jsonpath={.status.conditions[?(@.type=='ScalingActive')].status}"]
      assert.strictEqual(yield* command("kubectl", able), "True")
      assert.strictEqual(bodyOf(Listed, yield* caller.call("GET", "/v1/deployments")).data.length, 1)
    }).pipe(Effect.scoped),
  1_200_000
)
