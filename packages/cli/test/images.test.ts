import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { imageList, parseManifests } from "../src/imageList.ts"
import { parse, seatrial } from "./runCommand.ts"

const digest = (letter: string) => `sha256:${letter.repeat(64)}`
const chart = `
---
# Source: a file without an object
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings }
data: { image: not/an-image:1 }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: seatrial-operator }
spec:
  template:
    spec:
      initContainers: [{ name: wait, image: "seatrial:1" }]
      containers:
        - name: operator
          image: seatrial:1
          env:
            - { name: PORT, value: 80 }
            - { name: OPERATOR_FETCH_IMAGE, value: "downloads:2" }
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: clean }
spec: { jobTemplate: { spec: { template: { spec: { containers: [{ image: "seatrial:1" }] } } } } }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: postgres }
spec: { template: { spec: { containers: [{ image: "postgres:18@${digest("a")}" }] } } }
`
const cluster = JSON.stringify({
  kind: "List",
  items: [
    { kind: "HostClass", metadata: { name: "h100" }, spec: { runtimes: [{ runtime: "vllm", image: "vllm:1" }] }, status: {} },
    { kind: "ModelDeployment", metadata: { name: "chat" }, spec: {}, status: { engineImage: "vllm:1", engineDigest: digest("b") } },
    {
      kind: "Pod",
      metadata: { name: "server-0" },
      spec: { containers: [{ name: "server", image: "seatrial:1" }] },
      status: { containerStatuses: [{ image: "seatrial:1", imageID: `registry/seatrial@${digest("c")}` }] }
    }
  ]
})
const expected = [
  { image: "downloads:2", digest: null, used_by: ["Deployment/seatrial-operator"] },
  { image: `postgres:18@${digest("a")}`, digest: digest("a"), used_by: ["StatefulSet/postgres"] },
  { image: "seatrial:1", digest: digest("c"), used_by: ["CronJob/clean", "Deployment/seatrial-operator", "Pod/server-0"] },
  { image: "vllm:1", digest: digest("b"), used_by: ["HostClass/h100", "ModelDeployment/chat"] }
]

describe("seatrial images", () => {
  it("lists the images of programs, Jobs, downloads and engines once, with each digest that a manifest has", () => {
    const manifests = [chart, cluster].flatMap((text) => parseManifests(text) ?? [])
    assert.deepStrictEqual(imageList(manifests), expected)
    assert.deepStrictEqual(imageList(parseManifests("") ?? []), [])
  })

  it.live("reads files, prints a table or JSON, and refuses what is not YAML by its name", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-images-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const [rendered, listed, broken] = [join(folder, "chart.yaml"), join(folder, "cluster.json"), join(folder, "broken.yaml")]
      writeFileSync(rendered, chart)
      writeFileSync(listed, cluster)
      writeFileSync(broken, "a: [b")
      const json = yield* seatrial(["images", rendered, listed, "--json"])
      assert.deepStrictEqual(parse(json.out), expected)
      const table = yield* seatrial(["images", listed])
      assert.match(table.out, /^IMAGE +DIGEST +USED BY|^IMAGE +DIGEST +USED_BY/u)
      assert.match(table.out, new RegExp(`^vllm:1 +${digest("b")} +HostClass/h100, ModelDeployment/chat$`, "mu"))
      const invalid = yield* seatrial(["images", rendered, broken])
      assert.deepStrictEqual([invalid.code, invalid.out], [2, ""])
      assert.include(invalid.err, `${broken} is neither YAML nor JSON.`)
      const missing = yield* seatrial(["images", join(folder, "none")])
      assert.strictEqual(missing.code, 2)
      assert.include(missing.err, "cannot be read")
    }).pipe(Effect.scoped)
  )
})
