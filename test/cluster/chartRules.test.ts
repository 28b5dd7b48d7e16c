import { readFile } from "node:fs/promises"
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
