import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { AnyObject, pageBlocks } from "./pageBlocks.ts"
import { render } from "./renderChart.ts"

const Application = Schema.Struct({ spec: Schema.Struct({ source: Schema.Struct({ helm: Schema.Struct({ valuesObject: AnyObject }) }) }) })
const Release = Schema.Struct({ spec: Schema.Struct({ values: AnyObject }) })

describe("the chart takes the values of the page", () => {
  it("on installations without internet access, and downloads get the hub, its redirects and its certificate", async () => {
    const blocks = await pageBlocks("install-without-internet.md")
    assert.lengthOf(blocks, 4)
    const rendered = blocks.map((values) => render(values))
    const env = (at: number, program: string) =>
      JSON.stringify(rendered[at]?.read(`Deployment/seatrial-${program}`, "spec", "template", "spec", "containers", "0", "env"))
    assert.include(JSON.stringify(rendered[0]?.read("Deployment/seatrial-server", "spec", "template", "spec")), "registry.internal/seatrial:0.1.0")
    for (const program of ["server", "operator"]) {
      assert.include(env(1, program), "https://hub.internal:8443")
      assert.include(env(1, program), ".storage.internal")
      assert.include(env(3, program), "/etc/hub-ca/ca.crt")
    }
    const downloads = JSON.stringify(rendered[1]?.read("NetworkPolicy/seatrial-downloads", "spec", "egress"))
    for (const port of [443, 8_443, 9_000]) assert.include(downloads, `"port":${port},`)
    assert.include(JSON.stringify(rendered[2]?.read("NetworkPolicy/seatrial-downloads", "spec", "egress")), "kubernetes.io/metadata.name")
    assert.include(env(3, "operator"), "OPERATOR_CA_CONFIG_MAP")
  })

  it("on Argo CD, and renders the same each time", async () => {
    const [application] = await pageBlocks("argo-cd.md")
    const { valuesObject } = Schema.decodeUnknownSync(Application)(application).spec.source.helm
    const { kinds } = render(valuesObject)
    assert.isFalse(kinds.some((object) => object.startsWith("Secret/")))
  })

  it("on kubectl, which runs no hooks and can change no Job", async () => {
    const readme = await readFile(join(import.meta.dirname, "../../charts/seatrial/README.md"), "utf8")
    const command = /helm template seatrial charts\/seatrial ([\s\S]*?) \| kubectl apply/u.exec(readme)?.[1] ?? ""
    const args = command.split(/[\s\\]+/u).filter((word) => !["-n", "seatrial", "--values", "my-values.yaml"].includes(word))
    const [first, next] = [[], ["--is-upgrade"]].map((more) => render({}, { args: [...args, ...more] }))
    const jobs = (rendered: typeof first) => rendered?.kinds.filter((object) => /^(Job|Pod)\//u.test(object))
    assert.deepStrictEqual([jobs(first), jobs(next)], [["Job/seatrial-weights-check"], []])
    assert.isFalse(first?.kinds.some((object) => object.startsWith("Secret/")))
    const env = next?.read("Deployment/seatrial-operator", "spec", "template", "spec", "containers", "0", "env")
    assert.include(JSON.stringify(env), '{"name":"DATABASE_MIGRATE","value":"true"}')
  })

  it("on Flux", async () => {
    const [release] = await pageBlocks("flux.md")
    assert.include(render(Schema.decodeUnknownSync(Release)(release).spec.values).kinds, "Deployment/seatrial-gateway")
  })
})
