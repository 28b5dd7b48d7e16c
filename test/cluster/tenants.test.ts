import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving, source } from "../e2e/Served.ts"
import { injectSidecar } from "./injectSidecar.ts"
import { startRealCluster } from "./RealCluster.ts"
import { refusals } from "./refusePods.ts"
import { startProduct } from "./startProduct.ts"

const openStage = Effect.gen(function* () {
  const cluster = yield* startRealCluster
  const { command, namespace } = cluster
  const { caller, startOperator } = yield* startProduct(cluster)
  return {
    cluster,
    caller,
    startOperator,
    apply: (...items: ReadonlyArray<unknown>) =>
      command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) }),
    /** How the API server would create the object. */
    dryRun: (object: unknown, output: string) =>
      command("kubectl", ["create", `--namespace=${namespace}`, "--dry-run=server", "-o", output, "-f", "-"], { input: JSON.stringify(object) }),
    /** Part of what an object of a run shows; empty until the operator has made it. */
    statusOf: (id: string, path: string) =>
      command("kubectl", ["get", "mdep", id.replaceAll("_", "-"), `--namespace=${namespace}`, "--ignore-not-found", "-o", `jsonpath={.status.${path}}`]),
    kubectl: (...args: ReadonlyArray<string>) => command("kubectl", [...args, `--namespace=${namespace}`])
  }
})

it.live(
  "a model serves although a webhook puts a container before those of its download and its engine",
  () =>
    Effect.gen(function* () {
      const { apply, caller, dryRun, kubectl, startOperator, statusOf } = yield* openStage
      yield* apply(...injectSidecar)
      const probe = { apiVersion: "v1", kind: "Pod", metadata: { name: "probe", labels: { "seatrial.dev/role": "engine" } } }
      // A policy takes effect a moment after it was created.
      const added = dryRun({ ...probe, spec: { containers: [{ name: "engine", image: "none" }] } }, "jsonpath={.spec.containers[*].name}")
      yield* eventually("containers are added", added, (containers) => containers === "mesh engine")
      const operator = yield* startOperator()
      const { id } = yield* caller.deploy({ source, serving })
      const ended = yield* caller.finished(id).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      assert.strictEqual(yield* kubectl("get", "pods", "-l", "seatrial.dev/role=engine", "-o", "jsonpath={.items[*].spec.containers[*].name}"), "mesh engine")
      assert.isAbove(wholeOf(yield* ask(caller, ended.model)).usage.completion_tokens, 0)
      yield* eventually("it is ready", statusOf(id, "conditions[?(@.type=='Ready')].status"), (status) => status === "True")
      assert.notInclude(yield* kubectl("get", "jobs", "-o", "name"), "fetch")
    }).pipe(Effect.scoped),
  1_200_000
)

it.live(
  "an engine that a policy, a quota or a limit refuses is shown with what refuses it, and starts once that is changed",
  () =>
    Effect.gen(function* () {
      const { apply, caller, cluster, dryRun, kubectl, startOperator, statusOf } = yield* openStage
      const operator = yield* startOperator()
      const probe = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "probe", labels: { "seatrial.dev/role": "engine" } },
        spec: { containers: [{ name: "engine", image: "none", resources: { limits: { "nvidia.com/gpu": "1", memory: "1Gi" } } }] }
      }
      const isRefused = dryRun(probe, "name").pipe(
        Effect.as(false),
        Effect.catch(() => Effect.succeed(true))
      )
      const first = yield* caller.finished((yield* caller.deploy({ source, serving })).id).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
      assert.strictEqual(first.status, "activated")
      for (const { name, objects, says } of refusals(cluster.namespace)) {
        yield* apply(...objects)
        yield* eventually(`the ${name} is in force`, isRefused, (refused) => refused)
        const { id } = yield* caller.deploy({ source, model_name: `with-${name}`, serving })
        const cause = yield* eventually(`the ${name} is the cause`, statusOf(id, "cause"), (shown) => shown !== "")
        assert.include(cause, says)
        assert.include(cause, `Pod/${id.replaceAll("_", "-")}-engine-0`)
        assert.strictEqual(yield* statusOf(id, "conditions[?(@.type=='Ready')].reason"), "PodRefused")
        const events = kubectl("get", "events", "--field-selector=reason=PodRefused", "-o", "jsonpath={.items[*].message}")
        yield* eventually(`the ${name} has an event`, events, (messages) => messages.includes(says))
        // Callers see no object of the cluster.
        assert.notInclude((yield* caller.call("GET", `/v1/deployments/${id}/progress`)).text, says)
        yield* Effect.forEach(objects, ({ kind, metadata }) => kubectl("delete", kind, metadata.name))
        const ended = yield* caller.finished(id).pipe(Effect.tapCause(() => Effect.logError(operator.output())))
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        assert.strictEqual(yield* statusOf(id, "cause"), "")
      }
    }).pipe(Effect.scoped),
  1_200_000
)

it.live(
  "GPUs that another namespace holds are not free: a run waits for them without a loss, and with the right to read all pods the host class shows it",
  () =>
    Effect.gen(function* () {
      const { apply, caller, cluster, startOperator, statusOf } = yield* openStage
      const { command } = cluster
      const freeGpus = command("kubectl", ["get", "hc", "sim-small", "-o", "jsonpath={.status.freeGpus}"])
      const foreign = (name: string) => ({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "team" },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [{ name: "training", image: "nowhere:1", resources: { limits: { "nvidia.com/gpu": "4" } } }]
        }
      })
      yield* apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } }, foreign("one"), foreign("two"))
      yield* command("kubectl", ["wait", "--for=condition=PodScheduled", "pod", "--all", "--namespace=team", "--timeout=300s"])

      const unaware = yield* startOperator()
      yield* eventually("the host class seems to be free", freeGpus, (free) => free === "8")
      const { id } = yield* caller.deploy({ source, serving })
      yield* eventually("it says why its pod waits", statusOf(id, "message"), (message) => message.includes("Insufficient nvidia.com/gpu"))
      yield* eventually("it says what the operator does not count", statusOf(id, "message"), (message) => message.includes("OPERATOR_COUNT_ALL_PODS"))
      yield* unaware.signal("SIGTERM")
      yield* unaware.exited

      const rule = { apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] }
      const rbac = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name: "seatrial-operator-pods" } }
      const account = { kind: "ServiceAccount", name: "seatrial-operator", namespace: cluster.namespace }
      yield* apply(
        { ...rbac, kind: "ClusterRole", rules: [rule] },
        {
          ...rbac,
          kind: "ClusterRoleBinding",
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "seatrial-operator-pods" },
          subjects: [account]
        }
      )
      const aware = yield* startOperator({ OPERATOR_COUNT_ALL_PODS: "true" })
      yield* eventually("the host class is full", freeGpus, (free) => free === "0")
      yield* eventually("the run is in the queue", caller.deployment(id), ({ status }) => status === "queued")
      yield* command("kubectl", ["delete", "pod", "one", "--namespace=team", "--force", "--grace-period=0"])
      const ended = yield* caller.finished(id).pipe(Effect.tapCause(() => Effect.logError(aware.output())))
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      yield* eventually("the host class shows what is left", freeGpus, (free) => free === "3")
    }).pipe(Effect.scoped),
  1_200_000
)
