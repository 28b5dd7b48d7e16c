import { execFile } from "node:child_process"
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { parseAllDocuments } from "yaml"
import { type ControlPlane, startControlPlane } from "./ControlPlane.ts"
import { chartValues, wrongValues } from "./chartValues.ts"
import { rulesOf } from "./Permission.ts"
import { scratchFolder } from "./scratchFolder.ts"

const root = join(import.meta.dirname, "../..")
const chart = join(root, "charts/seatrial")
const namespace = "seatrial"

class Plane extends Context.Service<Plane, ControlPlane>()("test/Plane") {
  static readonly layer = Layer.effect(
    Plane,
    Effect.gen(function* () {
      const plane = yield* startControlPlane(yield* scratchFolder("chart"))
      const foreign = ["monitoring.yaml", "gateway-api.yaml"].flatMap((file) => ["-f", join(import.meta.dirname, "fixtures", file)])
      const definitions = ["-f", join(root, "k8s/crds"), ...foreign]
      yield* plane.command("kubectl", ["apply", "--server-side", "--validate=strict", ...definitions])
      yield* plane.command("kubectl", ["wait", "--for=condition=Established", "crd", "--all", "--timeout=300s"])
      for (const name of [namespace, "team-a", "team-b"]) yield* plane.command("kubectl", ["create", "namespace", name])
      // A pod that is not what Pod Security calls restricted is a warning, and a warning is an error below.
      yield* plane.command("kubectl", ["label", "namespace", namespace, "pod-security.kubernetes.io/warn=restricted"])
      return Plane.of(plane)
    })
  )
}

const Labels = Schema.Record(Schema.String, Schema.String)
const Metadata = Schema.Struct({ name: Schema.optionalKey(Schema.String), labels: Schema.optionalKey(Labels) })
const Template = Schema.Struct({ metadata: Metadata })
/** What these tests read of a rendered object. */
const Rendered = Schema.Struct({
  kind: Schema.String,
  metadata: Metadata,
  data: Schema.optionalKey(Labels),
  spec: Schema.optionalKey(
    Schema.Struct({
      podSelector: Schema.optionalKey(Schema.Struct({ matchLabels: Schema.optionalKey(Labels) })),
      policyTypes: Schema.optionalKey(Schema.Array(Schema.String)),
      egress: Schema.optionalKey(Schema.Unknown),
      template: Schema.optionalKey(Template),
      jobTemplate: Schema.optionalKey(Schema.Struct({ spec: Schema.Struct({ template: Template }) }))
    })
  )
})
const decodeRendered = Schema.decodeUnknownSync(Rendered)
const objectsOf = (rendered: string) => parseAllDocuments(rendered).flatMap((document) => (document.contents === null ? [] : [decodeRendered(document.toJS())]))

const Rules = Schema.Array(
  Schema.Struct({ backendRefs: Schema.optionalKey(Schema.Unknown), http: Schema.optionalKey(Schema.Unknown), matches: Schema.optionalKey(Schema.Unknown) })
)
const decodeRoute = Schema.decodeUnknownSync(
  Schema.Struct({ kind: Schema.optionalKey(Schema.String), spec: Schema.optionalKey(Schema.Struct({ rules: Schema.optionalKey(Rules) })) })
)
const decodeSpec = Schema.decodeUnknownSync(Schema.Struct({ spec: Schema.Unknown }))
/** Asks the server whether it would take all of it as it is: no unknown field, no warning. */
const dryRun = (plane: ControlPlane, args: ReadonlyArray<string>, input = "") =>
  plane.command("kubectl", ["apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", ...args], { input })

const refusal = (plane: ControlPlane, args: ReadonlyArray<string>) => Effect.flip(plane.command("helm", args)).pipe(Effect.map(({ message }) => message))

layer(Plane.layer, { excludeTestServices: true, timeout: "5 minutes" })("the chart and the manifests", (it) => {
  for (const [name, values] of Object.entries(chartValues)) {
    it.effect(`with ${name}: lint finds nothing and the server takes every object`, () =>
      Effect.gen(function* () {
        const plane = yield* Plane
        const file = join(plane.directory, "values.json")
        yield* Effect.promise(() => writeFile(file, JSON.stringify(values)))
        yield* plane.command("helm", ["lint", "--strict", chart, "--values", file])
        const rendered = yield* plane.command("helm", ["template", "seatrial", chart, "--namespace", namespace, "--values", file])
        const output = yield* dryRun(plane, ["-f", "-"], rendered)
        const objects = parseAllDocuments(rendered).filter((document) => document.contents !== null)
        assert.strictEqual(output.trim().split("\n").length, objects.length, output)
      })
    )
  }

  it.effect("the API server accepts every manifest and sample", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const samples = yield* Effect.promise(() => readdir(join(root, "k8s/samples")))
      assert.isAbove(samples.length, 2)
      for (const path of ["k8s/rbac.yaml", "k8s/crds", "k8s/deletion-guards.yaml", ...samples.map((file) => `k8s/samples/${file}`)]) {
        // They name their namespace if they have one.
        yield* plane.command("kubectl", ["apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", join(root, path)])
      }
    })
  )

  it.effect("an invalid value is refused with its path and the reason", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      for (const [set, says] of wrongValues) assert.match(yield* refusal(plane, ["template", "seatrial", chart, "--set", set]), says, set)
    })
  )

  it.effect("the chart creates only the Secret of the gateways' salts, and none if one is named", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const secrets = (...set: ReadonlyArray<string>) =>
        Effect.map(plane.command("helm", ["template", "seatrial", chart, ...set.flatMap((each) => ["--set", each])]), (rendered) =>
          objectsOf(rendered).filter(({ kind }) => kind === "Secret")
        )
      for (const set of [[], ["postgres.embedded.enabled=true"]]) {
        const [secret, ...further] = yield* secrets(...set)
        assert.deepStrictEqual([secret?.metadata.name, further], ["seatrial-gateway", []])
        assert.match(Buffer.from(secret?.data?.["cache-secret"] ?? "", "base64").toString(), /^[A-Za-z0-9]{48}$/)
      }
      assert.deepStrictEqual(yield* secrets("gateway.cacheSecret.existingSecret=salts"), [])
    })
  )

  it.effect("each pod of the release is selected by one network policy, for connections in and out", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      for (const set of ["postgres.embedded.enabled=true", "postgres.embedded.enabled=false"]) {
        const objects = objectsOf(yield* plane.command("helm", ["template", "seatrial", chart, "--is-upgrade=false", "--set", set]))
        const policies = objects.filter(({ kind }) => kind === "NetworkPolicy")
        const selecting = (labels: Readonly<Record<string, string>>) =>
          policies.filter(({ spec }) => Object.entries(spec?.podSelector?.matchLabels ?? {}).every(([name, value]) => labels[name] === value))
        const pods = objects.flatMap(({ kind, metadata, spec }) => {
          const template = kind === "Pod" ? { metadata } : (spec?.template ?? spec?.jobTemplate?.spec.template)
          return template === undefined ? [] : [template.metadata.labels ?? {}]
        })
        assert.isAtLeast(pods.length, 7)
        const ofOperator = ["engine", "fetch", "reference"].map((role) => ({ "app.kubernetes.io/managed-by": "seatrial", "seatrial.dev/role": role }))
        for (const labels of [...pods, ...ofOperator]) {
          const selected = selecting(labels)
          assert.deepStrictEqual([selected.length, selected[0]?.spec?.policyTypes], [1, ["Ingress", "Egress"]], JSON.stringify(labels))
        }
        const [downloads] = selecting(ofOperator[1] ?? {})
        const ports = JSON.stringify(downloads?.spec?.egress)
        assert.include(ports, "169.254.0.0/16")
        assert.notInclude(ports, "5432")
      }
    })
  )

  it.effect("an Ingress and an HTTPRoute of the chart have the paths of the samples", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const routes = (rendered: string) => {
        const selected = new Map<string, unknown>()
        for (const document of parseAllDocuments(rendered)) {
          const { kind, spec } = decodeRoute(document.toJS() ?? {})
          const rule = spec?.rules?.map(({ backendRefs, http, matches }) => ({ backendRefs, http, matches }))
          if (kind !== undefined && rule !== undefined) selected.set(kind, rule)
        }
        return selected
      }
      const set = "ingress.enabled=true,ingress.host=seatrial.example.com,httpRoute.enabled=true,httpRoute.parentRefs[0].name=public"
      const rendered = routes(yield* plane.command("helm", ["template", "seatrial", chart, "--show-only", "templates/routes.yaml", "--set", set]))
      for (const [kind, file] of [
        ["Ingress", "ingress.yaml"],
        ["HTTPRoute", "httproute.yaml"]
      ] as const) {
        const sample = routes(yield* Effect.promise(() => readFile(join(root, "k8s/samples", file), "utf8"))).get(kind)
        assert.isDefined(sample)
        assert.deepStrictEqual(rendered.get(kind), sample)
      }
    })
  )

  it.effect("a gateway that becomes autoscaled keeps its number of replicas, and once it was scaled, that number is not Helm's", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const gateway = ["deployment", "seatrial-gateway", "--namespace", namespace]
      const owner = { "meta.helm.sh/release-name": "seatrial", "meta.helm.sh/release-namespace": namespace }
      const selected = { app: "gateway" }
      const present = {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "seatrial-gateway", namespace, labels: { "app.kubernetes.io/managed-by": "Helm" }, annotations: owner },
        spec: {
          replicas: 5,
          selector: { matchLabels: selected },
          template: { metadata: { labels: selected }, spec: { containers: [{ name: "none", image: "none" }] } }
        }
      }
      const set = ["--set", "gateway.autoscaling.enabled=true", "--set", "gateway.replicas=2"]
      const template = ["template", "seatrial", chart, "--namespace", namespace, "--dry-run=server", "--show-only", "templates/gateway.yaml", ...set]
      const replicas = Effect.map(plane.command("helm", template), (rendered) =>
        parseAllDocuments(rendered)
          .find((document) => document.get("kind") === "Deployment")
          ?.getIn(["spec", "replicas"])
      )
      const scale = (count: number) => plane.command("kubectl", ["scale", ...gateway, `--replicas=${count}`])
      const apply = (...how: ReadonlyArray<string>) => plane.command("kubectl", ["apply", ...how, "-f", "-"], { input: JSON.stringify(present) })
      const numbers = Effect.gen(function* () {
        // As Helm 4 applies.
        yield* apply("--server-side", "--field-manager=helm")
        const before = yield* replicas
        yield* scale(7)
        const scaled = yield* replicas
        yield* plane.command("kubectl", ["delete", ...gateway])
        // As Helm 3 does: a number that the chart no longer has becomes 1.
        yield* apply()
        yield* scale(7)
        return [before, scaled, yield* replicas]
      })
      assert.deepStrictEqual(yield* Effect.ensuring(numbers, Effect.ignore(plane.command("kubectl", ["delete", ...gateway]))), [5, undefined, 7])
    })
  )

  it.effect("the API server adds nothing to lists of custom resources, which Argo CD would report as differences at each sync", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const set = [
        "httpRoute.enabled=true",
        "httpRoute.parentRefs[0].name=public",
        "monitoring.serviceMonitor.enabled=true",
        "monitoring.prometheusRule.enabled=true"
      ]
      const templates = ["routes.yaml", "monitoring.yaml"].flatMap((file) => ["--show-only", `templates/${file}`])
      const rendered = yield* plane.command("helm", ["template", "seatrial", chart, "--namespace", namespace, ...templates, "--set", set.join(",")])
      const custom = parseAllDocuments(rendered).filter((document) => document.get("kind") !== "Service")
      assert.lengthOf(custom, 3)
      for (const document of custom) {
        const applied = yield* dryRun(plane, ["-o", "json", "-f", "-"], document.toString())
        assert.deepStrictEqual(decodeSpec(JSON.parse(applied)), decodeSpec(document.toJS()))
      }
    })
  )

  it.effect("a second release in a namespace is refused: two operators would share one lease", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const operator = ["deployment", "first-operator", "--namespace=team-a"]
      yield* plane.command("kubectl", ["create", ...operator, "--image=none", "--replicas=0"])
      const labels = ["name=seatrial", "component=operator", "instance=first"].map((label) => `app.kubernetes.io/${label}`)
      yield* plane.command("kubectl", ["label", "--overwrite", ...operator, ...labels])
      const install = (release: string, ...where: ReadonlyArray<string>) =>
        plane.command("helm", ["template", release, chart, "--dry-run=server", "--set", "fullnameOverride=seatrial", ...where])
      const second = yield* Effect.flip(install("second", "--namespace=team-a"))
      yield* install("first", "--namespace=team-a")
      yield* install("second", "--namespace=team-b")
      yield* plane.command("kubectl", ["delete", ...operator])
      assert.match(second.message, /The namespace team-a has the release first: their operators would share one lease/u)
    })
  )

  it.effect("an upgrade has the Job that binds the claim for weights until the claim is bound, also after an install that failed before it", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const template = ["template", "seatrial", chart, "--namespace", namespace, "--show-only", "templates/weights-check.yaml", "--is-upgrade"]
      const job = (...args: ReadonlyArray<string>) =>
        plane.command("helm", [...template, ...args]).pipe(
          Effect.map((rendered) => objectsOf(rendered).map(({ metadata }) => metadata.name)),
          // Helm fails if the template is empty.
          Effect.catchTag("ControlPlaneError", ({ message }) => Effect.succeed([message.includes("could not find template") ? "none" : message]))
        )
      const withCluster = job("--dry-run=server")
      assert.deepStrictEqual(yield* job(), ["none"])
      assert.deepStrictEqual(yield* withCluster, ["seatrial-weights-check-1"])
      const claimRef = { name: "seatrial-weights", namespace }
      const common = { accessModes: ["ReadWriteMany"], storageClassName: "" }
      const volume = { ...common, capacity: { storage: "1Ti" }, hostPath: { path: "/nowhere" }, persistentVolumeReclaimPolicy: "Retain", claimRef }
      const owner = { "meta.helm.sh/release-name": "seatrial", "meta.helm.sh/release-namespace": namespace }
      const claim = {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: { ...claimRef, labels: { "app.kubernetes.io/managed-by": "Helm" }, annotations: owner },
        spec: { ...common, resources: { requests: { storage: "1Ti" } } }
      }
      const apply = (object: object) => plane.command("kubectl", ["apply", "-f", "-"], { input: JSON.stringify(object) })
      yield* apply(claim)
      assert.deepStrictEqual(yield* withCluster, ["seatrial-weights-check-1"])
      yield* apply({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "weights" }, spec: volume })
      const target = [`--namespace=${namespace}`, "persistentvolumeclaim/seatrial-weights"]
      yield* plane.command("kubectl", ["wait", "--for=jsonpath={.status.phase}=Bound", ...target, "--timeout=120s"])
      const bound = yield* withCluster
      yield* plane.command("kubectl", ["delete", ...target, "persistentvolume/weights", "--wait=false"])
      assert.deepStrictEqual(bound, ["none"])
    })
  )

  it.effect("the operator's permissions are those of k8s/rbac.yaml", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const rendered = yield* plane.command("helm", ["template", "seatrial", chart, "--namespace", namespace, "--show-only", "templates/rbac.yaml"])
      const manifest = yield* Effect.promise(() => readFile(join(root, "k8s/rbac.yaml"), "utf8"))
      const wanted = rulesOf(manifest)
      assert.isAbove(wanted.length, 10)
      assert.deepStrictEqual(rulesOf(rendered), wanted)
    })
  )

  it.effect("cluster-wide the operator reads nodes, host classes and custom resources, and changes nothing but status and finalizers", () =>
    Effect.gen(function* () {
      const manifest = yield* Effect.promise(() => readFile(join(root, "k8s/rbac.yaml"), "utf8"))
      const wide = rulesOf(manifest).filter((permission) => permission.startsWith("cluster "))
      for (const permission of wide)
        assert.match(
          permission,
          /^cluster ((list|watch) (nodes|(hostclasses|modeldeployments)\.seatrial\.dev)|get modeldeployments\.seatrial\.dev|patch (hostclasses\.seatrial\.dev\/status|modeldeployments\.seatrial\.dev(\/status)?)|get customresourcedefinitions\.apiextensions\.k8s\.io modeldeployments\.seatrial\.dev)$/u
        )
    })
  )

  it.effect("the notes give the commands of administration the owner's address if the server has a login of its own", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const notes = (...args: ReadonlyArray<string>) =>
        plane.command("helm", ["install", "seatrial", chart, "--namespace", namespace, "--dry-run=client", "--set", "crds.check=false", ...args])
      const allNotes = yield* notes()
      assert.match(allNotes, /exec deploy\/seatrial-server -- env SEATRIAL_ADMIN=\S+ seatrial admin orgs create acme --name Acme\n/)
      assert.notInclude(allNotes, "get secret")
      const own = yield* notes("--set", "database.programKeys.server=server-url", "--set", "database.key=owner-url")
      assert.notInclude(own, "-- env SEATRIAL_ADMIN")
      assert.include(own, `get secret seatrial-database -o go-template='{{index .data "owner-url" | base64decode}}' |`)
      assert.include(own, "\n  admin orgs create acme --name Acme\n")
      // The function is a shell's, and passes each argument on as it is.
      const shell = /^ {2}admin\(\) \{\n[\s\S]*?\n {2}\}$/mu.exec(own)?.[0] ?? ""
      const kubectl = 'kubectl() { case "$*" in *"get secret"*) printf postgres://owner;; *) while [ "$1" != -- ]; do shift; done; shift; "$@";; esac; }'
      const bin = join(plane.directory, "notes-bin")
      yield* Effect.promise(() => mkdir(bin, { recursive: true }))
      const program = '#!/bin/sh\nprintf "%s|" "$DATABASE_URL" "$SEATRIAL_ADMIN" "$@"'
      yield* Effect.promise(() => writeFile(join(bin, "seatrial"), program, { mode: 0o755 }))
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)("sh", ["-c", `${kubectl}\n${shell}\nadmin orgs create "a b"`], { env: { PATH: `${bin}:${process.env.PATH}` } })
      )
      assert.strictEqual(stdout, "postgres://owner|you@example.com|admin|orgs|create|a b|")
    })
  )

  it.effect("the README's commands end the deletion of the release's own namespace, and leave nothing of the release", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const kubectl = (...args: ReadonlyArray<string>) => plane.command("kubectl", args)
      const doomed = "doomed"
      yield* kubectl("create", "namespace", doomed)
      const templates = ["--show-only", "templates/rbac.yaml", "--show-only", "templates/deletion-guards.yaml"]
      const rights = yield* plane.command("helm", ["template", "seatrial", chart, "--namespace", doomed, ...templates])
      yield* plane.command("kubectl", ["apply", "-f", "-"], { input: rights })
      for (const place of [doomed, "team-b"]) {
        const metadata = { name: "tiny", namespace: place, finalizers: ["seatrial.dev/retire"] }
        const object = { apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", metadata, spec: { source: { repo: "seatrial/tiny-chat" } } }
        yield* plane.command("kubectl", ["apply", "-f", "-"], { input: JSON.stringify(object) })
      }
      yield* kubectl("delete", "namespace", doomed, "--wait=false")
      const readme = yield* Effect.promise(() => readFile(join(chart, "README.md"), "utf8"))
      const commands = /```sh\n(kubectl get modeldeployments -A [\s\S]*?)```/u.exec(readme)?.[1] ?? ""
      const env = { PATH: `${join(root, "tools/bin")}:${process.env.PATH}`, KUBECONFIG: plane.kubeconfig, HOME: plane.directory }
      yield* Effect.promise(() => promisify(execFile)("sh", ["-ec", commands], { env }))
      yield* kubectl("wait", "--for=delete", `namespace/${doomed}`, "--timeout=120s")
      const kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
      assert.strictEqual(yield* kubectl("get", kinds, "-l", "app.kubernetes.io/name=seatrial", "-o", "name"), "")
      yield* kubectl("delete", "modeldeployment/tiny", "--namespace=team-b", "--timeout=60s")
    })
  )

  it.effect("an installation over definitions that are not the chart's is refused, and says what to do", () =>
    Effect.gen(function* () {
      const plane = yield* Plane
      const install = ["install", "seatrial", chart, "--namespace", namespace, "--dry-run=server"]
      yield* plane.command("helm", install)
      const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/description"
      const patch = JSON.stringify([{ op: "add", path, value: "That of another version." }])
      yield* plane.command("kubectl", ["patch", "crd", "hostclasses.seatrial.dev", "--type=json", "--patch", patch])
      assert.match(yield* refusal(plane, install), /definition of hostclasses\.seatrial\.dev is not that of this chart[\s\S]*kubectl apply --server-side/u)
      yield* plane.command("helm", [...install, "--set", "crds.check=false"])
      // What it says to do.
      const definitions = yield* plane.command("helm", ["show", "crds", chart])
      yield* plane.command("kubectl", ["apply", "--server-side", "--force-conflicts", "-f", "-"], { input: definitions })
      yield* plane.command("helm", install)
    })
  )
})

const Closed = Schema.Struct({ type: Schema.Literal("object"), additionalProperties: Schema.Unknown })

describe("values.schema.json", () => {
  it("is closed: every object lists its members", async () => {
    const open: Array<string> = []
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return
      if (!Array.isArray(value) && "type" in value && value.type === "object" && !Schema.is(Closed)(value)) open.push(path)
      for (const [key, each] of Object.entries(value)) walk(each, `${path}/${key}`)
    }
    walk(JSON.parse(await readFile(join(chart, "values.schema.json"), "utf8")), "")
    // Helm's own, for charts within charts.
    assert.deepStrictEqual(open, ["/properties/global"])
  })
})
