import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parse } from "yaml"
import { render, renderText } from "./renderChart.ts"

const programs = ["server", "gateway", "operator"] as const

const decodePrograms = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ env: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })))
const decodeRules = Schema.decodeUnknownSync(Schema.Array(Schema.Unknown))

describe("with values for its pods the chart", () => {
  it("replaces pods as *.strategy says, keeps revisionHistoryLimit ReplicaSets, and otherwise never has a pod too few", () => {
    const usual = render({})
    for (const program of ["server", "gateway"])
      assert.deepStrictEqual(usual.read(`Deployment/seatrial-${program}`, "spec", "strategy"), { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } })
    assert.isUndefined(usual.read("Deployment/seatrial-operator", "spec", "strategy"))
    const strategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } }
    const own = render({ revisionHistoryLimit: 2, server: { strategy }, gateway: { strategy }, operator: { strategy: { type: "Recreate" } } })
    for (const program of programs) {
      assert.deepStrictEqual(own.read(`Deployment/seatrial-${program}`, "spec", "strategy"), program === "operator" ? { type: "Recreate" } : strategy)
      assert.strictEqual(own.read(`Deployment/seatrial-${program}`, "spec", "revisionHistoryLimit"), 2)
    }
  })

  it("spreads pods by *.topologySpreadConstraints, which get the program's selector unless they have one", () => {
    const constraint = { topologyKey: "rack", maxSkew: 2, whenUnsatisfiable: "DoNotSchedule" }
    const labelSelector = { matchLabels: { team: "platform" } }
    const { read } = render({ gateway: { topologySpreadConstraints: [constraint, { ...constraint, labelSelector }] } })
    const spread = (program: string) => read(`Deployment/seatrial-${program}`, "spec", "template", "spec", "topologySpreadConstraints")
    const matchLabels = { "app.kubernetes.io/name": "seatrial", "app.kubernetes.io/instance": "seatrial", "app.kubernetes.io/component": "gateway" }
    assert.deepStrictEqual(spread("gateway"), [
      { ...constraint, labelSelector: { matchLabels } },
      { ...constraint, labelSelector }
    ])
    assert.isTrue(Array.isArray(spread("server")))
  })

  it("spreads pods over nodes in a cluster without zones too: zones are a preference of their own, which an own podAntiAffinity replaces", () => {
    const own = { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: "rack" } }] } }
    const { read } = render({ gateway: { affinity: own }, server: { topologySpreadConstraints: [] } })
    const of = (program: string, ...path: ReadonlyArray<string>) => read(`Deployment/seatrial-${program}`, "spec", "template", "spec", ...path)
    const preferred = ["affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"]
    for (const program of programs) assert.deepInclude(of(program, "topologySpreadConstraints", "0"), { topologyKey: "kubernetes.io/hostname", maxSkew: 1 })
    for (const program of programs) assert.isUndefined(of(program, "topologySpreadConstraints", "1"))
    assert.strictEqual(of("server", ...preferred, "0", "podAffinityTerm", "topologyKey"), "topology.kubernetes.io/zone")
    assert.deepStrictEqual(of("gateway", "affinity"), own)
    assert.isUndefined(render({ topologySpread: { enabled: false } }).read("Deployment/seatrial-server", "spec", "template", "spec", "affinity"))
  })

  it("gives every pod of the release hostAliases and its DNS settings", () => {
    const settings = { hostAliases: [{ ip: "10.0.0.5", hostnames: ["hub.internal"] }], dnsPolicy: "None", dnsConfig: { nameservers: ["10.0.0.53"] } }
    const { kinds, read } = render({ ...settings, postgres: { embedded: { enabled: true } } })
    const paths = {
      Deployment: ["spec", "template"],
      StatefulSet: ["spec", "template"],
      Job: ["spec", "template"],
      CronJob: ["spec", "jobTemplate", "spec", "template"],
      Pod: []
    }
    const pods = kinds.flatMap((object) => Object.entries(paths).flatMap(([kind, path]) => (object.startsWith(`${kind}/`) ? [{ object, path }] : [])))
    assert.isAtLeast(pods.length, 7)
    for (const { object, path } of pods)
      for (const [name, value] of Object.entries(settings)) assert.deepStrictEqual(read(object, ...path, "spec", name), value, `${object} ${name}`)
  })

  it("writes labels and IP families of Services, and labels of ServiceAccounts", () => {
    const service = { labels: { "example.com/team": "platform" }, ipFamilyPolicy: "PreferDualStack", ipFamilies: ["IPv6", "IPv4"] }
    const serviceAccount = { labels: { "example.com/identity": "yes" } }
    const { read } = render({ server: { service, serviceAccount }, gateway: { service, serviceAccount }, operator: { serviceAccount } })
    for (const program of programs) assert.strictEqual(read(`ServiceAccount/seatrial-${program}`, "metadata", "labels", "example.com/identity"), "yes")
    for (const program of ["server", "gateway"]) {
      assert.strictEqual(read(`Service/seatrial-${program}`, "metadata", "labels", "example.com/team"), "platform")
      assert.strictEqual(read(`Service/seatrial-${program}`, "spec", "ipFamilyPolicy"), "PreferDualStack")
      assert.deepStrictEqual(read(`Service/seatrial-${program}`, "spec", "ipFamilies"), ["IPv6", "IPv4"])
    }
    assert.isUndefined(render({}).read("Service/seatrial-server", "spec", "ipFamilies"))
  })

  it("limits drains by maxUnavailable, or by minAvailable instead", () => {
    const budget = (podDisruptionBudget: unknown) => {
      const { read } = render({ podDisruptionBudget })
      return [read("PodDisruptionBudget/seatrial-gateway", "spec", "maxUnavailable"), read("PodDisruptionBudget/seatrial-gateway", "spec", "minAvailable")]
    }
    assert.deepStrictEqual(budget({}), [1, undefined])
    assert.deepStrictEqual(budget({ maxUnavailable: "50%" }), ["50%", undefined])
    assert.deepStrictEqual(budget({ minAvailable: 1 }), [undefined, 1])
  })

  it("runs the same embedded Postgres with every version of the chart", () => {
    const { read } = render({ postgres: { embedded: { enabled: true } }, commonLabels: { "example.com/team": "platform" } })
    assert.deepStrictEqual(read("StatefulSet/seatrial-postgres", "spec", "template", "metadata", "labels"), {
      "app.kubernetes.io/name": "seatrial",
      "app.kubernetes.io/instance": "seatrial",
      "app.kubernetes.io/component": "postgres",
      "example.com/team": "platform"
    })
  })

  it("has no Job of the migration with the embedded Postgres, which it would have to reach before the release's own objects: the programs migrate", () => {
    for (const [embedded, migrates] of [
      [true, "true"],
      [false, "false"]
    ] as const) {
      const { kinds, read } = render({ postgres: { embedded: { enabled: embedded } } }, { args: ["--is-upgrade"] })
      const of = (name: string) => kinds.includes(name)
      assert.deepStrictEqual([of("Job/seatrial-migrate"), of("NetworkPolicy/seatrial-migrate")], [!embedded, !embedded])
      for (const program of ["server", "gateway", "operator"]) {
        const env = read(`Deployment/seatrial-${program}`, "spec", "template", "spec", "containers", "0", "env")
        assert.include(JSON.stringify(env), JSON.stringify({ name: "DATABASE_MIGRATE", value: migrates }))
      }
    }
  })

  it("gives every pod that opens Postgres the certificate of its authority, with the values of the README", async () => {
    const readme = await readFile(join(import.meta.dirname, "../../charts/seatrial/README.md"), "utf8")
    const example = /```yaml\n(server: &[\s\S]*?)```/u.exec(readme)?.[1] ?? ""
    const { kinds, read } = render(parse(example))
    const Container = Schema.Struct({
      env: Schema.Array(Schema.Struct({ name: Schema.String, value: Schema.optionalKey(Schema.String) })),
      volumeMounts: Schema.Array(Schema.Struct({ name: Schema.String, mountPath: Schema.String }))
    })
    const decodePod = Schema.decodeUnknownSync(
      Schema.Struct({ containers: Schema.Array(Container), volumes: Schema.Array(Schema.Struct({ name: Schema.String })) })
    )
    const pods = kinds.flatMap((object) => {
      if (/^(Deployment|Job)\//u.test(object) && !object.includes("weights-check")) return [read(object, "spec", "template", "spec")]
      return object.startsWith("CronJob/") ? [read(object, "spec", "jobTemplate", "spec", "template", "spec")] : []
    })
    assert.lengthOf(pods, 5)
    for (const { containers, volumes } of pods.map((pod) => decodePod(pod))) {
      const [container] = containers
      const file = container?.env.find(({ name }) => name === "NODE_EXTRA_CA_CERTS")?.value ?? ""
      const mount = container?.volumeMounts.find(({ mountPath }) => file.startsWith(`${mountPath}/`))
      assert.isTrue(volumes.some(({ name }) => name === mount?.name))
    }
  })

  it("lets no value replace the address of Postgres in the Jobs", () => {
    for (const [path, values] of [
      ["migrations", { migrations: { env: { DATABASE_URL: "postgres://secret" } } }],
      ["weights.cleanup", { weights: { cleanup: { env: { DATABASE_URL: "postgres://secret" } } } }]
    ] as const)
      assert.throws(() => render(values), new RegExp(`${path}\\.env\\.DATABASE_URL cannot be set: it comes from the Secret`, "u"))
  })

  it("puts the spool on a claim if a value says so, which the gateway's group can write", () => {
    const decodeVolumes = Schema.decodeUnknownSync(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))
    const gatewayPod = (values: unknown) => {
      const { read } = render(values)
      const spec = ["Deployment/seatrial-gateway", "spec", "template", "spec"] as const
      return { volumes: decodeVolumes(read(...spec, "volumes")), security: read(...spec, "securityContext") }
    }
    const spool = { volume: { persistentVolumeClaim: { claimName: "spool" } } }
    const own = gatewayPod({ gateway: { replicas: 1, strategy: { type: "Recreate" }, spool } })
    assert.deepInclude(own.volumes, { name: "spool", persistentVolumeClaim: { claimName: "spool" } })
    assert.deepInclude(own.security, { runAsUser: 2000, fsGroup: 2000, fsGroupChangePolicy: "OnRootMismatch" })
    // A volume that is too small would end the gateway while Postgres is down.
    assert.deepInclude(gatewayPod({}).volumes, { name: "spool", emptyDir: { sizeLimit: "512Mi" } })
    assert.deepInclude(gatewayPod({ gateway: { spool: { maxBytes: 2 ** 30 } } }).volumes, { name: "spool", emptyDir: { sizeLimit: "2048Mi" } })
  })

  it("gives the operator alone the webhook of its Secret, and opens its port", () => {
    const webhook = { existingSecret: "hook", urlKey: "address", signingKey: "key", port: 8443 }
    const { read } = render({ operator: { webhook } })
    const ref = (key: string) => ({ name: "hook", key })
    const expected = [
      { name: "OPERATOR_WEBHOOK_URL", valueFrom: { secretKeyRef: ref("address") } },
      { name: "OPERATOR_WEBHOOK_SECRET", valueFrom: { secretKeyRef: { ...ref("key"), optional: true } } }
    ]
    const port = { ports: [{ port: 8443, protocol: "TCP" }] }
    for (const program of ["server", "gateway", "operator"]) {
      const [container] = decodePrograms(read(`Deployment/seatrial-${program}`, "spec", "template", "spec", "containers"))
      const rules = decodeRules(read(`NetworkPolicy/seatrial-${program}`, "spec", "egress"))
      const isOperator = program === "operator"
      assert.deepStrictEqual(
        container?.env.filter(({ name }) => String(name).startsWith("OPERATOR_WEBHOOK")),
        isOperator ? expected : []
      )
      assert.strictEqual(rules.filter((rule) => JSON.stringify(rule) === JSON.stringify(port)).length, isOperator ? 1 : 0)
    }
    assert.notInclude(renderText({}), "WEBHOOK")
    assert.throws(() => render({ operator: { env: { OPERATOR_WEBHOOK_URL: "http://hook" } } }), /it comes from the Secret of operator\.webhook/u)
  })

  it("writes no number of replicas for an autoscaled gateway, and a budget from its minimum", () => {
    const { kinds, read } = render({ gateway: { replicas: 1, autoscaling: { enabled: true } } })
    assert.includeMembers(kinds, ["HorizontalPodAutoscaler/seatrial-gateway", "PodDisruptionBudget/seatrial-gateway"])
    assert.isUndefined(read("Deployment/seatrial-gateway", "spec", "replicas"))
  })

  it("makes the check of the claim a hook of each sync of Argo CD", () => {
    const { read } = render({}, { args: ["--is-upgrade=false"] })
    const annotation = (name: string) => read("Job/seatrial-weights-check", "metadata", "annotations", `argocd.argoproj.io/${name}`)
    assert.deepStrictEqual([annotation("hook"), annotation("hook-delete-policy")], ["Sync", "BeforeHookCreation"])
  })
})
