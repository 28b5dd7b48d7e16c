import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Lease, Pod } from "@seatrial/kube"
import { makeRepository, sampleHubToken } from "@seatrial/local"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Effect, Option, Schema } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { serving } from "../e2e/Served.ts"
import { spoiltRepository } from "../e2e/spoiltRepository.ts"
import { auditedPermissions } from "./auditedPermissions.ts"
import { hostClass, startHelmCluster } from "./HelmCluster.ts"
import { holdQueued } from "./kueueStandIn.ts"
import { type Permission, rulesOf } from "./Permission.ts"

const chart = join(import.meta.dirname, "../../charts/seatrial")
const account = "system:serviceaccount:seatrial:seatrial-operator"

const gated = makeRepository({
  name: "test/gated",
  gated: true,
  commits: [{ title: "Weights", files: Object.fromEntries(trainedFiles("tiny-chat")) }]
})

/** What an operator's own metrics say. */
const leads = (address: string) =>
  Effect.promise(async () => /^seatrial_kube_leader(\{.*\})? 1$/mu.test(await (await fetch(`http://${address}:9090/metrics`)).text()))

const applied = {
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "ModelDeployment",
  metadata: { name: "team-chat", namespace: "team-a" },
  spec: { source: { repo: "test/spoilt", ref: "good" }, serving: { hostClass: "sim-small", maxContext: 512 } }
}

/** A refused object: with a missing host class in the namespace of an organization, without an organization in the operator's namespace. */
const refused = (namespace: string, maxContext: number) => ({
  ...applied,
  metadata: { name: "refused", namespace },
  spec: { ...applied.spec, serving: { hostClass: "none", maxContext } }
})

const list = (items: ReadonlyArray<unknown>) => JSON.stringify({ apiVersion: "v1", kind: "List", items })

const Role = Schema.fromJsonString(
  Schema.Struct({
    apiVersion: Schema.String,
    kind: Schema.Literals(["Role", "ClusterRole"]),
    metadata: Schema.Struct({ name: Schema.String, namespace: Schema.optionalKey(Schema.String) }),
    rules: Schema.Array(
      Schema.Struct({
        apiGroups: Schema.Array(Schema.String),
        resources: Schema.Array(Schema.String),
        resourceNames: Schema.optionalKey(Schema.Array(Schema.String)),
        verbs: Schema.Array(Schema.String)
      })
    )
  })
)

it.live(
  "the chart's permissions suffice for the operator, and it needs each one of them",
  () =>
    Effect.gen(function* () {
      const cluster = yield* startHelmCluster({ repositories: [spoiltRepository, gated] })
      const { admin, command, helm, kube, kubectl, namespace } = cluster
      yield* command("kubectl", ["create", "namespace", "team-a"])
      const values = [
        "--values",
        cluster.valuesFile,
        "--set",
        "operator.replicas=2,operator.countAllPods=true,kueue.enabled=true,organizations.namespaces.team-a=acme"
      ]
      yield* helm("install", "seatrial", chart, ...values, "--wait", "--timeout", "8m")
      const classes = [hostClass(), hostClass("queued", { queueName: "gpus" })]
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: list([...classes, ...holdQueued]) })
      yield* cluster.organization("acme", "ann@acme.test")
      yield* admin("hub-connections", "set", "--org", "acme", "--email", "ann@acme.test", "--token", sampleHubToken)
      const { api } = yield* cluster.caller("acme", "ann@acme.test")
      const model = (repo: string, ref?: string) => ({ kind: "model_hub", repo, ...(ref === undefined ? {} : { ref }) })
      yield* eventually(
        "the server knows the host classes",
        api.call("POST", "/v1/deployment-previews", { source: model("test/gated"), serving: { ...serving, host_class: "queued" } }),
        ({ text }) => text.includes('"derived"')
      )

      // A download with a token, a trial, an engine that serves.
      const served = yield* api.deploy({ source: model("test/gated"), serving })
      // An applied object in another namespace.
      const elsewhere = (...args: ReadonlyArray<string>) => command("kubectl", [...args, "--namespace=team-a"])
      yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify(applied) })
      // A run that waits in a Kueue queue until it is cancelled.
      const queued = yield* api.deploy({ source: model("test/spoilt", "good"), model_name: "queued", serving: { ...serving, host_class: "queued" } })
      // An engine that dies while it starts.
      const failing = yield* api.deploy({ source: model("test/spoilt", "misfit"), model_name: "failing", serving })
      assert.strictEqual((yield* api.finished(failing.id)).status, "failed")
      const activated = yield* api.finished(served.id)
      assert.deepStrictEqual([activated.status, activated.failure_detail], ["activated", null])
      yield* api.until(queued.id, "is queued", ({ status }) => status === "queued")
      yield* eventually(
        "the pod waits in the queue",
        kube.list(Pod, { namespace, labelSelector: "kueue.x-k8s.io/queue-name=gpus" }),
        (pods) => pods.length === 1
      )

      // Changed and refused again, which the event counts.
      for (const [at, maxContext] of [512, 384].entries()) {
        yield* command("kubectl", ["apply", "-f", "-"], { input: list(["team-a", namespace].map((place) => refused(place, maxContext))) })
        for (const place of ["team-a", namespace]) {
          const path = "jsonpath={.status.conditions[?(@.type=='Accepted')].observedGeneration}"
          const observedGeneration = command("kubectl", ["get", "modeldeployment/refused", `--namespace=${place}`, "-o", path])
          yield* eventually(`what is applied in ${place} is refused`, observedGeneration, (generation) => generation === String(at + 1))
        }
      }
      for (const place of ["team-a", namespace]) {
        assert.match(
          yield* command("kubectl", ["describe", "modeldeployment/refused", `--namespace=${place}`]),
          /Warning +Refused +[\dms]+ \(x2 over [\dms]+\)/u
        )
        yield* command("kubectl", ["delete", "modeldeployment/refused", `--namespace=${place}`])
      }

      yield* elsewhere("wait", "--for=condition=Activated", "modeldeployment/team-chat", "--timeout=300s")

      // Objects that are deleted in namespaces that no longer have an organization: one without a Role, and the operator's own.
      yield* command("kubectl", ["create", "namespace", "former"])
      for (const place of ["former", namespace]) {
        const left = { ...applied, metadata: { name: "left", namespace: place, finalizers: ["seatrial.dev/retire"] } }
        yield* command("kubectl", ["apply", "-f", "-"], { input: JSON.stringify(left) })
        yield* command("kubectl", ["delete", "modeldeployment/left", `--namespace=${place}`, "--timeout=300s"])
      }

      // Someone lets the engine be evicted, which is taken back.
      const budget = ["poddisruptionbudget", served.id.replace("_", "-")]
      yield* kubectl("patch", ...budget, "--type=merge", '--patch={"spec":{"minAvailable":0,"selector":{"matchLabels":{"more":"x"}}}}')
      const edited = kubectl("get", ...budget, "-o", "jsonpath={.spec.minAvailable}{.spec.selector.matchLabels.more}")
      yield* eventually("the disruption budget is corrected", edited, (text) => text === "1")

      // Its custom resource is lost while no operator runs, and comes back.
      const scale = (replicas: number) => kubectl("scale", "deployment/seatrial-operator", `--replicas=${replicas}`)
      const running = kube.list(Pod, { namespace, labelSelector: "app.kubernetes.io/component=operator" })
      yield* scale(0)
      yield* eventually("no operator runs", running, (pods) => pods.length === 0)
      yield* elsewhere("patch", "modeldeployment/team-chat", "--type=merge", "--patch", '{"metadata":{"finalizers":null}}')
      yield* elsewhere("delete", "modeldeployment/team-chat")
      yield* scale(2)
      yield* eventually("the custom resource is back", elsewhere("get", "modeldeployments", "-o", "name"), (names) => names.includes("team-chat"))
      yield* kubectl("rollout", "status", "deployment/seatrial-operator", "--timeout=300s")

      // The leader goes, and another leads.
      const holder = Effect.map(kube.get(Lease, "seatrial-operator", namespace), (lease) => Option.getOrThrow(lease).spec?.holderIdentity ?? "")
      const before = yield* holder
      const operators = yield* kube.list(Pod, { namespace, labelSelector: "app.kubernetes.io/component=operator" })
      const leaders = yield* Effect.filter(operators, ({ status }) => leads(status?.podIP ?? ""))
      assert.strictEqual(leaders.length, 1)
      yield* kubectl("delete", "pod", leaders[0]?.metadata.name ?? "", "--grace-period=0", "--force")
      yield* eventually("another operator leads", holder, (now) => now !== before && now !== "")

      assert.strictEqual((yield* api.call("POST", `/v1/deployments/${queued.id}/cancel`)).status, 200)
      // A model that is deleted takes its engine, budget, Job, Secret and custom resource with it.
      for (const slug of [activated.model.split("/")[1] ?? "", "team-chat"]) yield* admin("models", "delete", "--org", "acme", slug, "--yes")
      yield* eventually("the one in the other namespace is gone", elsewhere("get", "modeldeployments", "-o", "name"), (names) => names.trim() === "")
      const remains = kubectl("get", "pods,jobs,poddisruptionbudgets,modeldeployments", "-l", "app.kubernetes.io/managed-by=seatrial", "-o", "name")
      yield* eventually("nothing is left of what served", remains, (names) => !names.includes(served.id.replace("_", "-")) && !names.includes("engine"))

      const readRole = (kind: string, name: string, place = namespace) =>
        Effect.map(command("kubectl", ["get", kind, name, `--namespace=${place}`, "-o", "json"]), Schema.decodeUnknownSync(Role))
      const roles = [
        yield* readRole("role", "seatrial-operator"),
        yield* readRole("role", "seatrial-operator-kueue"),
        yield* readRole("role", "seatrial-seatrial-operator", "team-a"),
        yield* readRole("clusterrole", "seatrial-seatrial-operator")
      ]
      /** Those that allow in all namespaces what others allow in one. */
      const wideNames = ["seatrial-seatrial-operator-finalizers", "seatrial-seatrial-operator-pods"]
      const wideRoles = yield* Effect.forEach(wideNames, (name) => readRole("clusterrole", name))
      // Used only while a namespace is being deleted, after Kubernetes has removed the operator's Role there.
      const whileDeleted = "cluster patch modeldeployments.seatrial.dev/status"
      const all = rulesOf([...roles, ...wideRoles].map((role) => JSON.stringify(role)).join("\n---\n"))
      assert.include(all, whileDeleted)
      const granted = all.filter((one) => one !== whileDeleted)
      const { denied, used } = yield* auditedPermissions(cluster.audit, account, granted)
      assert.deepStrictEqual([denied, used], [[], granted])

      const ask = (wanted: Permission) => {
        const [scope, verb = "", resource = "", name] = wanted.split(" ")
        const [plural = "", subresource] = resource.split("/")
        const may = [
          "auth",
          "can-i",
          verb,
          name === undefined ? plural : `${plural}/${name}`,
          ...(subresource === undefined ? [] : [`--subresource=${subresource}`]),
          `--as=${account}`
        ]
        return command("kubectl", [...may, ...(scope === "cluster" ? ["--all-namespaces"] : [`--namespace=${scope}`])]).pipe(
          Effect.map((operatorLog) => operatorLog.trim() === "yes"),
          // It exits with 1 if the answer is no.
          Effect.catch(({ message }) => (/can-i/.test(message) ? Effect.succeed(false) : Effect.fail(new Error(message))))
        )
      }
      /** The role without some of what it allows. */
      const lacking = (role: typeof Role.Type, missing: ReadonlyArray<Permission>) =>
        JSON.stringify({
          ...role,
          rules: role.rules.flatMap((rule) =>
            rule.resources.flatMap((resource) =>
              rule.apiGroups.flatMap((group) =>
                rule.verbs.flatMap((verb) => {
                  const single = { ...rule, apiGroups: [group], resources: [resource], verbs: [verb] }
                  return rulesOf(JSON.stringify({ ...role, rules: [single] })).some((one) => missing.includes(one)) ? [] : [single]
                })
              )
            )
          )
        })
      const replace = (input: string) => command("kubectl", ["replace", "-f", "-"], { input })
      /** Each rule by itself: without it the account is denied what it did. */
      const checkEach = Effect.fnUntraced(function* (role: typeof Role.Type) {
        for (const wanted of rulesOf(JSON.stringify(role))) {
          yield* replace(lacking(role, [wanted]))
          yield* eventually(`${wanted} is denied without its rule`, ask(wanted), (allowed) => !allowed)
        }
        yield* replace(JSON.stringify(role))
      })

      yield* Effect.forEach(wideRoles, checkEach, { discard: true })
      // They would allow what the Roles below no longer do.
      yield* command("kubectl", ["delete", "clusterrolebinding", ...wideNames])

      // Without these permissions, in this order, the operator stops working, names the missing one, and continues when it has it.
      const [own] = roles
      const verbs = [
        ["patch", "modeldeployments", "modeldeployments.seatrial.dev"],
        ["create", "events", "events.events.k8s.io"],
        ["create", "pods", "pods"]
      ] as const
      const sample = verbs.map(([verb, , resource]) => `${namespace} ${verb} ${resource}`)
      assert.isTrue(own !== undefined && sample.every((one) => granted.includes(one)))
      if (own !== undefined) {
        yield* replace(lacking(own, sample))
        for (const each of sample) yield* eventually(`${each} is denied`, ask(each), (allowed) => !allowed)
        const stopped = yield* api.deploy({ source: model("test/spoilt", "good"), model_name: "stopped", serving })
        for (const [at, [verb, resource]] of verbs.entries()) {
          const says = new RegExp(`cannot ${verb} resource .*${resource}`)
          const operatorLog = kubectl("logs", "-l", "app.kubernetes.io/component=operator", "--tail=-1", "--since=5m")
          yield* eventually(`the operator logs that it may not ${verb} ${resource}`, operatorLog, (text) => says.test(text))
          yield* replace(lacking(own, sample.slice(at + 1)))
        }
        assert.strictEqual((yield* api.finished(stopped.id)).status, "activated")
      }

      yield* Effect.forEach(roles, checkEach, { discard: true })
    }).pipe(Effect.scoped),
  1_200_000
)
