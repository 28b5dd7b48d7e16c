import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { FailureCode, type MetricFamily } from "@seatrial/domain"
import { gatewayMetrics } from "@seatrial/gateway"
import { kubeMetrics } from "@seatrial/kube"
import { operatorMetrics } from "@seatrial/operator"
import { serverMetrics } from "@seatrial/server"
import { storeMetrics } from "@seatrial/store"

const text = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8")

/** The rows of the table under a heading. */
const tableUnder = (heading: string): ReadonlyArray<string> => {
  const section = text.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? ""
  return section.split("\n").filter((line) => line.startsWith("| `"))
}

const cell = (content: string) => content.replaceAll("|", "\\|")
const rowOf = ({ labels, meaning, name, type, unit }: MetricFamily) =>
  `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${unit} | ${cell(meaning)} |`

const families = [kubeMetrics, operatorMetrics, storeMetrics, serverMetrics, gatewayMetrics].flatMap((metrics) =>
  Object.values(metrics).map(({ family }) => family)
)

describe("the document for operators", () => {
  it("says what to do for every code that a deployment may fail with, once, and for no other", () => {
    const told = tableUnder("What a failed deployment says").flatMap((row) =>
      [...(row.split(" | ")[0] ?? "").matchAll(/`([a-z_]+)`/g)].map((match) => match[1])
    )
    assert.deepStrictEqual([...told].sort(), [...FailureCode.literals].sort())
  })

  it("lists every metric as it is", () => assert.deepStrictEqual([...tableUnder("Metrics")].sort(), families.map(rowOf).sort()))

  it("names metrics as Prometheus does, and labels none by a key or a model, and by a deployment only what goes with it", () => {
    for (const { labels, name, type } of families) {
      assert.match(name, /^seatrial_[a-z_]+$/)
      assert.strictEqual(name.endsWith("_total"), type === "counter", name)
      // Its rows go ten minutes after the deployment gave its GPUs back.
      const ending = name === "seatrial_deployment_gpu_seconds_total" ? "deployment" : undefined
      for (const label of labels) if (label !== ending) assert.notMatch(label, /key|model|deployment|request|user|pod|prompt|_id$/, name)
    }
  })
})
