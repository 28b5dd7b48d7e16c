import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { ask, wholeOf } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import { startRealCluster } from "./RealCluster.ts"
import { scratchFolder } from "./scratchFolder.ts"
import { startProduct } from "./startProduct.ts"

const namespace = "seatrial"
const within = `--namespace=${namespace}`

const modelDeployment = (name: string, spec: object) => ({ apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", metadata: { name }, spec })
const hostClass = (name: string, spec: object) => ({ apiVersion: "seatrial.dev/v1alpha1", kind: "HostClass", metadata: { name }, spec })

/** Another namespace, and the operator's permissions there. */
const mapped = (name: string) => [
  { apiVersion: "v1", kind: "Namespace", metadata: { name } },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: { name: "seatrial-operator", namespace: name },
    rules: [
      { apiGroups: ["seatrial.dev"], resources: ["modeldeployments"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
      { apiGroups: ["seatrial.dev"], resources: ["modeldeployments/status"], verbs: ["patch"] },
      { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] }
    ]
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: "seatrial-operator", namespace: name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "seatrial-operator" },
    subjects: [{ kind: "ServiceAccount", name: "seatrial-operator", namespace }]
  }
]

/** A chart with one model. `spec` is its specification. */
const modelChart = Effect.gen(function* () {
  const folder = yield* scratchFolder("chart")
  const object = { ...modelDeployment("charted", {}), spec: "SPEC" }
  yield* Effect.promise(async () => {
    await mkdir(join(folder, "templates"))
    await writeFile(join(folder, "Chart.yaml"), JSON.stringify({ apiVersion: "v2", name: "charted", version: "1.0.0" }))
    await writeFile(join(folder, "values.yaml"), JSON.stringify({ spec: { source: { repo: "seatrial/tiny-chat" }, serving: { hostClass: "sim-small" } } }))
    await writeFile(join(folder, "templates/model.yaml"), JSON.stringify(object).replace('"SPEC"', "{{ toJson .Values.spec }}"))
  })
  return folder
})

const Audited = Schema.Struct({ data: Schema.Array(Schema.Struct({ actor_kind: Schema.String, action: Schema.String, after: Schema.Unknown })) })
const Served = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

it.live(
  "an applied model is tried, answers, and is changed and deleted with kubectl alone",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startRealCluster
      const { command } = cluster
      const { caller, startOperator } = yield* startProduct(cluster)
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], {
        input: JSON.stringify({ apiVersion: "v1", kind: "List", items: [...mapped("team"), ...mapped("former")] })
      })
      const mapping = "team=local,nowhere=local"
      const operator = yield* startOperator({ OPERATOR_ORGANIZATION: "local", OPERATOR_ORGANIZATIONS: `${mapping},former=local` })
      const kubectl = (...args: ReadonlyArray<string>) => command("kubectl", [...args, within]).pipe(Effect.tapError(() => Effect.logError(operator.output())))
      const apply = (name: string, spec: object) =>
        command("kubectl", ["apply", "--validate=strict", within, "-f", "-"], { input: JSON.stringify(modelDeployment(name, spec)) })
      const read = (name: string, path: string) => kubectl("get", "mdep", name, "-o", `jsonpath={${path}}`)
      const activated = (name: string) => kubectl("wait", "--for=condition=Activated", `mdep/${name}`, "--timeout=300s")
      const source = { repo: "seatrial/tiny-chat" }

      yield* apply("tiny", { source, serving: { hostClass: "sim-small", maxContext: 512 } })
      yield* activated("tiny")
      const first = yield* read("tiny", ".status.deploymentId")
      assert.strictEqual((yield* caller.deployment(first)).model, "local/tiny")
      assert.isAbove(wholeOf(yield* ask(caller, "local/tiny")).usage.completion_tokens, 0)
      const row = yield* kubectl("get", "mdep", "tiny", "--no-headers")
      assert.match(row, /^tiny\s+local\/tiny\s+activated\s+True\s/)
      const events = yield* kubectl("get", "events", "--field-selector=involvedObject.name=tiny", "-o", "jsonpath={.items[*].reason}")
      for (const reason of ["Screening", "Provisioning", "Checking", "Activated"]) assert.include(events, reason)
      const audited = yield* caller.read("/v1/org/audit-events?resource_type=model_config", Audited)
      assert.isTrue(
        audited.data.some(({ action, actor_kind, after }) => action === "created" && actor_kind === "system" && JSON.stringify(after).includes('"name":"tiny"'))
      )

      // The wait is for the new specification, not for the earlier activation.
      yield* apply("tiny", { source, serving: { hostClass: "sim-small", maxContext: 384 } })
      yield* activated("tiny")
      const second = yield* read("tiny", ".status.deploymentId")
      assert.notStrictEqual(second, first)
      assert.strictEqual(yield* read("tiny", ".status.maxContext"), "384")
      assert.isAbove(wholeOf(yield* ask(caller, "local/tiny")).usage.completion_tokens, 0)

      yield* apply("elsewhere", { source, organization: "other" })
      yield* kubectl("wait", "--for=condition=Accepted=false", "mdep/elsewhere", "--timeout=300s")
      assert.include(yield* read("elsewhere", ".status.message"), "Remove spec.organization")

      // Helm waits for an object as kstatus reads it: until the model serves, and not after its specification was refused.
      const chart = yield* modelChart
      const release = (...args: ReadonlyArray<string>) => command("helm", [...args, "charted", chart, within, "--wait", "--timeout=300s"])
      yield* release("install", "--set=spec.serving.maxContext=352").pipe(Effect.tapError(() => Effect.logError(operator.output())))
      assert.strictEqual(yield* read("charted", ".status.phase"), "activated")
      const refused = yield* Effect.flip(release("upgrade", "--set=spec.serving.maxContext=352", "--set=spec.organization=other"))
      assert.match(refused.message, /ModelDeployment\/seatrial\/charted not ready\. status: Failed/u)
      assert.isAbove(wholeOf(yield* ask(caller, "local/charted")).usage.completion_tokens, 0)
      yield* command("helm", ["uninstall", "charted", within, "--wait", "--timeout=300s"])

      const broken = {
        runtimes: [{ runtime: "reference", image: "nowhere.invalid/engine:1" }],
        gpuPool: "Seatrial-Sim-1GiB",
        gpuCount: 1,
        gpuMemoryBytes: 2 ** 30,
        nodeSelector: { "nvidia.com/gpu.product": "Seatrial-Sim-1GiB" },
        pricePerGpuHour: "100000",
        simulated: true
      }
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(hostClass("sim-broken", broken)) })
      yield* apply("broken", { source, serving: { hostClass: "sim-broken", maxContext: 256 } })
      const cause = yield* eventually("the cause is shown", read("broken", ".status.cause"), (text) => text !== "")
      assert.match(cause, /"reason":"(ErrImagePull|ImagePullBackOff)"/)
      assert.include(cause, "nowhere.invalid/engine:1")

      yield* command("kubectl", ["apply", "--validate=strict", "--namespace=former", "-f", "-"], {
        input: JSON.stringify(modelDeployment("kept", { source, serve: false, serving: { hostClass: "sim-small", maxContext: 288 } }))
      })
      // Another namespace has only its object; all other objects are in the operator's namespace. A namespace that the operator may not read blocks nothing.
      const abroad = (...args: ReadonlyArray<string>) => command("kubectl", [...args, "--namespace=team"])
      yield* command("kubectl", ["apply", "--validate=strict", "--namespace=team", "-f", "-"], {
        input: JSON.stringify(modelDeployment("abroad", { source, serve: false, serving: { hostClass: "sim-small", maxContext: 320 } }))
      })
      yield* abroad("wait", "--for=condition=Activated", "mdep/abroad", "--timeout=300s")
      assert.include(yield* abroad("get", "events", "-o", "jsonpath={.items[*].reason}"), "Activated")
      assert.strictEqual(yield* abroad("get", "pods,jobs,secrets", "-o", "name"), "")
      // The operator may read what other namespaces hold, and change nothing there.
      const account = "system:serviceaccount:seatrial:seatrial-operator"
      yield* command("kubectl", ["create", "namespace", "foreign"])
      const foreign = (...args: ReadonlyArray<string>) => command("kubectl", [...args, "--namespace=foreign"])
      yield* command("kubectl", ["apply", "--namespace=foreign", "-f", "-"], { input: JSON.stringify(modelDeployment("theirs", { source })) })
      const patch = (change: object, ...options: ReadonlyArray<string>) =>
        foreign("patch", "mdep", "theirs", "--type=merge", `--patch=${JSON.stringify(change)}`, `--as=${account}`, ...options).pipe(
          Effect.as("taken"),
          Effect.catch(({ message }) => Effect.succeed(message))
        )
      const denied = "the operator may only remove finalizers in a namespace in which it has no Role"
      for (const change of [{ spec: { serve: false } }, { metadata: { labels: { a: "b" } } }, { metadata: { finalizers: ["seatrial.dev/more"] } }])
        assert.include(yield* patch(change), denied)
      yield* foreign("patch", "mdep", "theirs", "--type=merge", '--patch={"metadata":{"finalizers":["seatrial.dev/test"]}}')
      assert.strictEqual(yield* patch({ metadata: { finalizers: [] } }), "taken")
      assert.include(yield* foreign("delete", "mdep", "theirs", `--as=${account}`).pipe(Effect.catch(({ message }) => Effect.succeed(message))), "forbidden")
      // Kubernetes removes the operator's Role from a namespace that is deleted before the operator has removed its finalizer.
      yield* command("kubectl", ["delete", "namespace", "team", "--timeout=300s"])

      // A namespace that is no longer mapped: its objects are not touched until they are deleted, with their namespace for example.
      const former = (...args: ReadonlyArray<string>) => command("kubectl", [...args, "--namespace=former"])
      yield* former("wait", "--for=condition=Activated", "mdep/kept", "--timeout=300s")
      yield* operator.signal("SIGTERM")
      yield* operator.exited
      yield* former("delete", "role/seatrial-operator", "rolebinding/seatrial-operator")
      const unaware = yield* startOperator({ OPERATOR_ORGANIZATION: "local", OPERATOR_ORGANIZATIONS: mapping })
      yield* command("kubectl", ["delete", "namespace", "former", "--timeout=300s"]).pipe(Effect.tapError(() => Effect.logError(unaware.output())))

      for (const name of ["broken", "elsewhere", "tiny"]) yield* kubectl("delete", "mdep", name, "--timeout=300s")
      const pods = kubectl("get", "pods", "-l", "seatrial.dev/role=engine", "-o", "name")
      yield* eventually("no engine is left", pods, (names) => names === "")
      assert.isEmpty((yield* caller.read("/v1/models", Served)).data)
      assert.strictEqual((yield* caller.deployment(second)).status, "activated")
      assert.strictEqual(yield* kubectl("get", "mdep", "-o", "name"), "")
    }).pipe(Effect.scoped),
  1_200_000
)
