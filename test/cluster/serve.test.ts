import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { DeploymentOperation } from "@seatrial/domain"
import { Job, Pod } from "@seatrial/kube"
import { HostClassResource } from "@seatrial/operator"
import { Effect } from "effect"
import { bodyOf } from "../e2e/Caller.ts"
import { ask, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { reachable } from "../e2e/reference/reachable.ts"
import { serving, source } from "../e2e/Served.ts"
import { startRealCluster } from "./RealCluster.ts"
import { startProduct } from "./startProduct.ts"
import { traceCollector } from "./traceCollector.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const phases = ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"]

it.live(
  "on a real control plane a model goes from create to an answer, with the scheduler, the reference of its commit and the operator's own account, and one trace links the request to the pod",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const collector = yield* traceCollector
      const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.address, OTEL_BSP_SCHEDULE_DELAY: "200" }
      const { caller, startOperator } = yield* startProduct(cluster, traces)
      const operator = yield* startOperator(traces)
      const python = yield* reachable(fileURLToPath(new URL("../e2e/reference/standIn", import.meta.url)))
      const referenceJob = { image: "ghcr.io/seatrial/reference-engine:0.1.0", python, cpu: 1, memoryBytes: 2 ** 28 }
      yield* cluster.kube.mergePatch(HostClassResource, serving.host_class, undefined, { spec: { referenceJob } })
      const headers = { "idempotency-key": crypto.randomUUID(), traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
      const created = yield* caller.call("POST", "/v1/deployments", { source, serving }, headers)
      assert.strictEqual(created.status, 201)
      const { id } = bodyOf(DeploymentOperation, created)
      const ended = yield* caller.finished(id).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      assert.match(ended.checks.find(({ name }) => name === "reference_agrees")?.detail ?? "", /from Transformers/u)
      const jobs = cluster.kube.list(Job, { namespace: cluster.namespace, labelSelector: "seatrial.dev/role=reference" })
      yield* eventually("the Job of the reference is gone", Effect.orDie(jobs), (left) => left.length === 0)
      const answer = wholeOf(yield* ask(caller, ended.model))
      assert.isAbove(answer.usage.completion_tokens, 0)
      yield* cluster.command("kubectl", [
        "wait",
        "--for=condition=Activated",
        "modeldeployments",
        "--all",
        `--namespace=${cluster.namespace}`,
        "--timeout=300s"
      ])

      // The pod names the span of the request that made it, which the server sent; the operator's phases are its children, and its passes link to it.
      const [pod] = yield* cluster.kube.list(Pod, { namespace: cluster.namespace, labelSelector: `seatrial.dev/deployment=${id}` })
      const [, trace, origin] = (pod?.metadata.annotations?.["seatrial.dev/traceparent"] ?? "").split("-")
      assert.strictEqual(trace, traceId)
      const spans = yield* eventually("the trace is whole", Effect.sync(collector.spans), (seen) => {
        const own = seen.filter((span) => span.traceId === traceId)
        const passed = own.filter(({ parentSpanId, service }) => service === "seatrial-operator" && parentSpanId === origin).map(({ name }) => name)
        return own.some(({ spanId }) => spanId === origin) && phases.every((phase) => passed.includes(`phase ${phase}`))
      })
      assert.deepStrictEqual(
        spans.filter(({ spanId }) => spanId === origin).map(({ service }) => service),
        ["seatrial"]
      )
      const passes = spans.filter(({ links, name }) => name === "reconcile" && links.some((link) => link.traceId === traceId && link.spanId === origin))
      assert.isAbove(passes.length, 0)
    }).pipe(Effect.scoped),
  1_200_000
)
