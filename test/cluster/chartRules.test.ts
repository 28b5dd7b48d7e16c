import { execFileSync } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parse } from "yaml"
import { render, renderText } from "./renderChart.ts"

const chart = join(import.meta.dirname, "../../charts/seatrial")

/** What Helm says of values that the chart refuses. */
const refusal = (values: unknown): string => {
  try {
    renderText(values)
  } catch (error) {
    return String(error)
  }
  return "taken"
}

const Values = Schema.Record(Schema.String, Schema.Unknown)
const isAnObject = Schema.is(Values)
/** A member of values.yaml that has members. */
const isValues = (value: unknown): value is typeof Values.Type => isAnObject(value) && !Array.isArray(value)

/** What these tests read of a JSON Schema. */
const ObjectSchema = Schema.Struct({
  $ref: Schema.optionalKey(Schema.String),
  definitions: Schema.optionalKey(Values),
  properties: Schema.optionalKey(Values),
  required: Schema.optionalKey(Schema.Array(Schema.String))
})
const decodeObjectSchema = Schema.decodeUnknownSync(ObjectSchema)

/** Names that the API server takes for every kind that the chart has. */
const dnsLabel = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/u

describe("names of the chart's objects", () => {
  const names = (release: string, values: object = {}) =>
    render({ ...values, weights: { cleanup: { claims: ["a", "b", "c"] } }, postgres: { embedded: { enabled: true } } }, { release }).kinds

  it("are valid with the longest name of a release", () => {
    for (const release of ["a".repeat(53), `${"a".repeat(33)}-${"b".repeat(19)}`]) {
      const jobs = names(release).filter((object) => object.startsWith("CronJob/"))
      assert.strictEqual(new Set(jobs).size, 4)
      for (const object of jobs) assert.isAtMost(object.length - "CronJob/".length, 52, object)
    }
  })

  it("are DNS labels if the release has dots in its name, and never start with a digit", () => {
    const services = names("models.v1.2").filter((object) => object.startsWith("Service/"))
    assert.isAtLeast(services.length, 4)
    for (const object of services) assert.match(object.slice("Service/".length), dnsLabel)
    assert.throws(() => names("1st"), /start with "1st-seatrial", which is not a letter: set fullnameOverride/u)
    assert.include(names("1st", { fullnameOverride: "first" }), "Service/first-server")
  })

  it("stay text if they look like another kind of value of YAML", () => {
    const values = {
      fullnameOverride: "no",
      image: { pullSecrets: [{ name: "9" }] },
      database: { existingSecret: "123", key: "1" },
      keys: { existingSecret: "1e5", encryptionKey: "2", cursorKey: "3", signingKeys: "4" },
      gateway: { cacheSecret: { key: "5" }, serviceAccount: { name: "null" } },
      weights: { claimName: "42", storageClass: "7" },
      priorityClassName: "12",
      ingress: { enabled: true, host: "*.example.com", className: "1", tlsSecret: "2" },
      httpRoute: { enabled: true, parentRefs: [{ name: "3" }], hostnames: ["1.5"] },
      organizations: { namespaces: { 1e3: "acme" } },
      monitoring: { serviceMonitor: { enabled: true } }
    }
    const names = /^(name|namespace|key|host|claimName|secretName|serviceAccountName|\w+ClassName|app\.kubernetes\.io\/\w+)$/u
    let texts = 0
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== "object" || value === null) return
      for (const [key, each] of Object.entries(value)) {
        walk(each, `${path}/${key}`)
        if (!names.test(key) || typeof each === "object") continue
        assert.isString(each, `${path}/${key}`)
        texts++
      }
    }
    for (const [release, embedded] of [
      ["on", true],
      ["123", false]
    ] as const)
      walk(render({ ...values, postgres: { embedded: { enabled: embedded, existingSecret: "6", key: "8" } } }, { release, namespace: "1e3" }).all, release)
    assert.isAbove(texts, 500)
  })

  it("take no dots from nameOverride and fullnameOverride", () => {
    for (const name of ["nameOverride", "fullnameOverride"]) assert.include(refusal({ [name]: "models.v1" }), `'/${name}'`)
  })
})

describe("labels of values", () => {
  const everything = {
    postgres: { embedded: { enabled: true } },
    monitoring: { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true }, dashboard: { enabled: true } }
  }
  const service = { service: { labels: { "example.com/team": "gateway" } }, serviceAccount: { labels: { "example.com/team": "gateway" } } }

  it("may repeat those of commonLabels, and win over them", () => {
    const values = { ...everything, commonLabels: { "example.com/team": "all" }, podLabels: { "example.com/team": "pods" }, gateway: service }
    // Reading fails if an object has a key twice.
    const { read } = render(values)
    const team = (object: string, ...path: ReadonlyArray<string>) => read(object, ...path, "metadata", "labels", "example.com/team")
    assert.deepStrictEqual(
      [team("Service/seatrial-gateway"), team("ServiceAccount/seatrial-gateway"), team("Service/seatrial-server"), team("StatefulSet/seatrial-postgres")],
      ["gateway", "gateway", "all", "all"]
    )
    assert.strictEqual(team("Deployment/seatrial-server", "spec", "template"), "pods")
  })

  it("are valid with the chart's version as Flux has it, and a new version of the chart alone replaces no pods", async () => {
    const folder = await mkdtemp(join(tmpdir(), "seatrial-package-"))
    try {
      const versions = ["0.2.0+4e5cbb7b97d0a0b4c6b7b3c1d7f7a3e9d2c1b0a9", "0.2.1"]
      const [flux, next] = versions.map((version) => {
        execFileSync(join(import.meta.dirname, "../../tools/bin/helm"), ["package", chart, "--version", version, "--destination", folder])
        return render({}, { chart: join(folder, `seatrial-${version}.tgz`) })
      })
      const labels = (rendered: typeof flux, ...path: ReadonlyArray<string>) =>
        Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.String))(rendered?.read("Deployment/seatrial-server", ...path, "metadata", "labels"))
      const own = labels(flux)["helm.sh/chart"] ?? ""
      assert.match(own, /^seatrial-0\.2\.0_4e5cbb7b97d0[0-9a-f]+$/u)
      assert.isAtMost(own.length, 63)
      assert.deepStrictEqual(labels(flux, "spec", "template"), labels(next, "spec", "template"))
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  const selecting = ["app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by", "helm.sh/chart", "seatrial.dev/metrics"]
  for (const [path, values] of [
    ["commonLabels", (labels: object) => ({ commonLabels: labels })],
    ["podLabels", (labels: object) => ({ podLabels: labels })],
    ["server.service.labels", (labels: object) => ({ server: { service: { labels } } })],
    ["operator.serviceAccount.labels", (labels: object) => ({ operator: { serviceAccount: { labels } } })],
    ["monitoring.dashboard.labels", (labels: object) => ({ monitoring: { dashboard: { enabled: true, labels } } })]
  ] as const)
    it(`cannot be the chart's own in ${path}`, () => {
      for (const label of selecting) assert.include(refusal(values({ [label]: "x" })), `${path} cannot have the label ${label}: the chart sets it`)
    })
})

describe("values", () => {
  it("of numbers are written with all their digits", () => {
    const { read } = render({ podUser: 1_000_650_000, postgres: { embedded: { enabled: true, user: 1_000_650_001 } } })
    for (const program of ["server", "gateway", "operator"])
      assert.strictEqual(read(`Deployment/seatrial-${program}`, "spec", "template", "spec", "securityContext", "runAsUser"), 1_000_650_000)
    assert.strictEqual(read("StatefulSet/seatrial-postgres", "spec", "template", "spec", "securityContext", "fsGroup"), 1_000_650_001)
    assert.notMatch(renderText({ podUser: 1_000_650_000, migrations: { deadlineSeconds: 86_400 }, gateway: { graceSeconds: 3_600 } }), /[0-9]e\+[0-9]/u)
  })

  const read = async (file: string) => Schema.decodeUnknownSync(Values)(parse(await readFile(join(chart, file), "utf8")))
  const isEmpty = (value: unknown) => value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0)

  it("that have a default are required: without one, Helm says which is missing. All others may be left out", async () => {
    const { definitions, ...schema } = decodeObjectSchema(await read("values.schema.json"))
    const resolve = (value: unknown) => {
      const { $ref, ...inline } = decodeObjectSchema(value)
      return $ref === undefined ? inline : decodeObjectSchema(definitions?.[$ref.replace("#/definitions/", "")])
    }
    const unguarded: Array<string> = []
    const optional: Array<string> = []
    const walk = (values: typeof Values.Type, { properties, required = [] }: typeof ObjectSchema.Type, path: string): void => {
      for (const [key, value] of Object.entries(values)) {
        if (required.includes(key) || key === "resources") {
          const inner = resolve(properties?.[key])
          if (isValues(value) && inner.properties !== undefined && key !== "resources") walk(value, inner, `${path}${key}.`)
        } else if (isEmpty(value)) optional.push(`${path}${key}`)
        else unguarded.push(`${path}${key}`)
      }
    }
    walk(await read("values.yaml"), schema, "")
    assert.deepStrictEqual(unguarded, [])
    assert.include(refusal({ tests: null }), "missing property 'tests'")
    assert.include(refusal({ gateway: { service: null }, server: { serviceAccount: null } }), "missing property 'service'")
    assert.isAtLeast(optional.length, 50)
    const salts = ["--set", "gateway.cacheSecret.existingSecret=salts"]
    const without = optional.flatMap((path) => ["--set", `${path}=null`])
    assert.strictEqual(renderText({}, { args: [...without, ...salts] }), renderText({}, { args: salts }))
  })
})
