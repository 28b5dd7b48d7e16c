import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { serving, source } from "../e2e/Served.ts"
import { injectSidecar } from "./injectSidecar.ts"
import { startRealCluster } from "./RealCluster.ts"
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
    kubectl: (...args: ReadonlyArray<string>) => command("kubectl", [...args, `--namespace=${namespace}`])
  }
})

it.live(
  "a model serves although a webhook puts a container before those of its download and its engine",
  () =>
    Effect.gen(function* () {
      const { apply, caller, dryRun, kubectl, startOperator } = yield* openStage
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
      const ready = kubectl("get", "mdep", id.replaceAll("_", "-"), "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")
      yield* eventually("it is ready", ready, (status) => status === "True")
      assert.notInclude(yield* kubectl("get", "jobs", "-o", "name"), "fetch")
    }).pipe(Effect.scoped),
  1_200_000
)
