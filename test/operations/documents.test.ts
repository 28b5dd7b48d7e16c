import { globSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { FailureCode, failureTraits, type MetricFamily, RefusalCode, requestVocabulary } from "@seatrial/domain"
import { gatewayMetrics } from "@seatrial/gateway"
import { kubeMetrics } from "@seatrial/kube"
import { operatorMetrics } from "@seatrial/operator"
import { serverMetrics } from "@seatrial/server"
import { storeMetrics } from "@seatrial/store"
import { Schema } from "effect"
import { parseDocument } from "yaml"

/** The rows of the table under a heading of a reference page. */
const tableUnder = (page: string, heading: string): ReadonlyArray<string> => {
  const text = readFileSync(new URL(`../../docs/reference/${page}`, import.meta.url), "utf8")
  const section = text.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? ""
  return section.split("\n").filter((line) => line.startsWith("| `"))
}

const cell = (content: string) => content.replaceAll("|", "\\|")
const rowOf = ({ labels, meaning, name, type, unit }: MetricFamily) =>
  `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${unit} | ${cell(meaning)} |`

const families = [kubeMetrics, operatorMetrics, storeMetrics, serverMetrics, gatewayMetrics].flatMap((metrics) =>
  Object.values(metrics).map(({ family }) => family)
)

const chart = (file: string) => readFileSync(new URL(`../../charts/seatrial/${file}`, import.meta.url), "utf8")

/** Each metric in an expression, with the labels of its selector and of the aggregation. */
const metricsIn = (expression: string) => {
  const by = [...expression.matchAll(/\bby \(([^)]*)\)/gu)].flatMap(([, labels = ""]) => labels.split(", "))
  return [...expression.matchAll(/\b(seatrial_[a-z_]+)\{([^}]*)\}/gu)].map(([, name = "", selector = ""]) => ({
    name,
    labels: [...by, ...[...selector.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/gu)].map(([, label = ""]) => label)]
  }))
}
/** Labels that Prometheus adds when scraping. */
const scrapeLabels = new Set(["namespace", "pod", "job", "component"])

describe.each([
  [
    "dashboard",
    () => [
      ...chart("dashboards/seatrial.json")
        .replaceAll('\\"', '"')
        .matchAll(/"expr": "(.*)",$/gmu)
    ]
  ],
  // The template expands to scrape labels.
  [
    "alerts",
    () => [
      ...chart("templates/monitoring.yaml")
        .replaceAll("{{- $of -}}", "")
        .matchAll(/^ +expr: (.*)$/gmu)
    ]
  ]
] as const)("the chart's %s", (name, expressions) => {
  const metrics = expressions().flatMap(([, expression = ""]) => metricsIn(expression))
  it("uses existing metrics and labels", () => {
    assert.isAbove(metrics.length, 8)
    for (const { labels, name: metric } of metrics) {
      const family = families.find((each) => each.name === metric || (each.type === "histogram" && metric.replace(/_(bucket|count|sum)$/u, "") === each.name))
      assert.isDefined(family, metric)
      if (family?.type === "histogram") assert.notStrictEqual(metric, family.name, "a histogram has no series without a suffix")
      for (const label of labels) {
        assert.isTrue(family?.labels.includes(label) || scrapeLabels.has(label) || (label === "le" && metric.endsWith("_bucket")), `${metric} by ${label}`)
      }
    }
  })

  if (name === "dashboard") {
    it("shows every metric", () => {
      const shown = new Set(metrics.map(({ name: metric }) => metric.replace(/_(bucket|count|sum)$/u, "")))
      assert.deepStrictEqual(
        families.map((family) => family.name).filter((metric) => !shown.has(metric)),
        []
      )
    })
  }
})

it("the alert for failed deployments has exactly the codes that their users cannot fix", () => {
  const [, codes = ""] = /seatrial_operator_failures_total\{.*,code=~"([a-z_|]+)"/u.exec(chart("templates/monitoring.yaml")) ?? []
  const others = Object.entries(failureTraits).flatMap(([code, { owner }]) => (["hub", "cluster", "node", "operator"].includes(owner) ? [code] : []))
  assert.deepStrictEqual(codes.split("|").sort(), others.sort())
})

describe("the operations documents", () => {
  it("list exactly the failure codes of deployments", () => {
    const documented = tableUnder("failure-codes.md", "Codes").flatMap((row) =>
      [...(row.split(" | ")[0] ?? "").matchAll(/`([a-z_]+)`/g)].map((match) => match[1])
    )
    assert.deepStrictEqual([...documented].sort(), [...FailureCode.literals].sort())
  })

  it("list the codes with which a preview refuses", () => {
    const page = readFileSync(new URL("../../docs/reference/api.md", import.meta.url), "utf8")
    const list = /^Codes of a refusal: ([^.]+)\./mu.exec(page)?.[1] ?? ""
    assert.sameMembers(
      [...list.matchAll(/`([a-z_]+)`/g)].map(([, code]) => code),
      [...RefusalCode.literals]
    )
  })

  it("state the owner, the meaning and the remedy of each failure code", () => {
    for (const row of tableUnder("failure-codes.md", "Codes")) {
      const [codes = "", , whose = "", meaning = "", remedy = ""] = row.split(" | ")
      for (const [, code = ""] of codes.matchAll(/`([a-z_]+)`/g)) {
        assert.strictEqual(whose, Object.entries(failureTraits).find(([name]) => name === code)?.[1].owner, code)
      }
      assert.isAbove(meaning.length, 10, codes)
      assert.isAbove(remedy.length, 10, codes)
    }
  })

  it("name each failure code behind its owner in the guide", () => {
    const guide = readFileSync(new URL("../../docs/how-to/failed-deployments.md", import.meta.url), "utf8")
    const rows = (guide.split("\n## Find who can fix it\n")[1]?.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| "))
    const owners = { caller: "The caller", hub: "The hub", model: "The model", fit: "The memory estimate", engine: "The engine", operator: "Seatrial" }
    const cluster = "The cluster, a node"
    const named = rows.flatMap((row) => [...row.matchAll(/`([a-z_]+)`/gu)].map(([, code = ""]) => `${code}: ${row.split(" | ")[0]?.slice(2)}`))
    const expected = Object.entries(failureTraits).map(([code, { owner }]) => `${code}: ${owner === "cluster" || owner === "node" ? cluster : owners[owner]}`)
    assert.deepStrictEqual(named.toSorted(), expected.toSorted())
  })

  it("list every metric with its current definition", () =>
    assert.deepStrictEqual([...tableUnder("observability.md", "Metrics")].sort(), families.map(rowOf).sort()))

  it("name metrics that exist, in guides and explanations too", () => {
    const root = new URL("../../", import.meta.url)
    const text = globSync(["docs/**/*.md", "charts/*/README.md"], { cwd: root }).map((page) => readFileSync(new URL(page, root), "utf8"))
    const named = [...text.join("\n").matchAll(/\bseatrial_(?:benchmark|deployment|fit|gateway|gpus?|kube|operator|server|store)_[a-z_]+/gu)].map(
      ([name]) => name
    )
    const known = new Set(families.map(({ name }) => name))
    assert.isAbove(named.length, families.length)
    assert.deepStrictEqual(
      named.filter((name) => !known.has(name.replace(/_(bucket|count|sum)$/u, ""))),
      []
    )
  })

  it("use Prometheus naming, and no unbounded labels except on series that expire", () => {
    for (const { labels, name, type } of families) {
      assert.match(name, /^seatrial_[a-z_]+$/)
      assert.strictEqual(name.endsWith("_total"), type === "counter", name)
      // These series expire: ten minutes after the deployment released its GPUs, with the serving revision, or an hour after the last request.
      const ending =
        name === "seatrial_deployment_gpu_seconds_total" ? "deployment" : /^seatrial_(benchmark|engine|gateway|model)_/u.test(name) ? "model" : undefined
      for (const label of labels) if (label !== ending) assert.notMatch(label, /key|model|deployment|request|user|pod|prompt|_id$/, name)
    }
  })
})

describe("the samples that expose the Services", () => {
  const sample = (file: string) => parseDocument(readFileSync(new URL(`../../k8s/samples/${file}`, import.meta.url), "utf8")).toJS()
  const paths = Object.keys(requestVocabulary).sort()

  it("send each path of inference to the gateway and everything else to the server: an Ingress", () => {
    const Path = Schema.Struct({
      path: Schema.String,
      pathType: Schema.String,
      backend: Schema.Struct({ service: Schema.Struct({ name: Schema.String }) })
    })
    const Ingress = Schema.Struct({ spec: Schema.Struct({ rules: Schema.Tuple([Schema.Struct({ http: Schema.Struct({ paths: Schema.Array(Path) }) })]) }) })
    const rows = Schema.decodeUnknownSync(Ingress)(sample("ingress.yaml")).spec.rules[0].http.paths
    const to = (service: string) => rows.filter(({ backend }) => backend.service.name === service).map(({ path, pathType }) => `${pathType} ${path}`)
    assert.deepStrictEqual(
      to("seatrial-gateway").sort(),
      paths.map((path) => `Exact ${path}`)
    )
    assert.deepStrictEqual(to("seatrial-server"), ["Prefix /"])
  })

  it("send each path of inference to the gateway and everything else to the server: an HTTPRoute", () => {
    const Rule = Schema.Struct({
      matches: Schema.Array(Schema.Struct({ path: Schema.Struct({ type: Schema.String, value: Schema.String }) })),
      backendRefs: Schema.Tuple([Schema.Struct({ name: Schema.String })])
    })
    const Route = Schema.Struct({ spec: Schema.Struct({ rules: Schema.Array(Rule) }) })
    const rules = Schema.decodeUnknownSync(Route)(sample("httproute.yaml")).spec.rules
    const to = (service: string) =>
      rules.filter(({ backendRefs }) => backendRefs[0].name === service).flatMap(({ matches }) => matches.map(({ path }) => `${path.type} ${path.value}`))
    assert.deepStrictEqual(to("seatrial-gateway").sort(), [...paths.map((path) => `Exact ${path}`), "PathPrefix /v1/models/"].sort())
    assert.deepStrictEqual(to("seatrial-server"), ["PathPrefix /"])
  })
})
