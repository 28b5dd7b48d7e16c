import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import type { KubeObject } from "@seatrial/kube"
import { customResource } from "../../src/objects/customResource.ts"
import { disruptionBudget } from "../../src/objects/disruptionBudget.ts"
import { digestOf, runLabels } from "../../src/objects/engineObjects.ts"
import { enginePod } from "../../src/objects/enginePod.ts"
import { fetchJob, hubSecret } from "../../src/objects/fetchObjects.ts"
import { madeFromAnnotation, objectName } from "../../src/resources/objectNames.ts"
import { podClass, revision, run } from "../observations.ts"

const settings = {
  namespace: "seatrial",
  fetchImage: "registry:5000/seatrial:0.1.0@sha256:0",
  fetchSeconds: 60,
  pullSecrets: [],
  caConfigMap: null,
  downloadEnvironment: [],
  hubEndpoint: "http://hub"
}
const placed = { ...run, revision }
const engine = engineFor("reference")
if (engine === undefined) throw new Error("no engine")
const download = { run: placed, revision, settings, weightsClaim: "weights", owner: null }
const pod = enginePod({ run: placed, revision, podClass, engine, settings, weightsClaim: "weights" })
const job = fetchJob(download, false)

const standard = (component: string, name: string, version?: string) => ({
  "app.kubernetes.io/name": name,
  "app.kubernetes.io/instance": objectName(run.id),
  "app.kubernetes.io/component": component,
  "app.kubernetes.io/part-of": "seatrial",
  "app.kubernetes.io/managed-by": "seatrial",
  ...(version === undefined ? {} : { "app.kubernetes.io/version": version })
})

describe("the objects of a run", () => {
  const ofEngine = standard("engine", "reference", "reference-0.1.0")
  const ofDownload = standard("download", "seatrial-fetch", "0.1.0")
  const cases: ReadonlyArray<readonly [what: string, object: { readonly metadata: KubeObject["metadata"] }, labels: Readonly<Record<string, string>>]> = [
    ["an engine's pod", pod, ofEngine],
    ["its disruption budget", disruptionBudget(placed, "seatrial", 1), ofEngine],
    ["a download's Job", job, ofDownload],
    ["its Secret", hubSecret(download, "t"), ofDownload],
    ["the custom resource", customResource(placed, "seatrial"), standard("deployment", "seatrial-deployment")]
  ]
  for (const [what, { metadata }, labels] of cases) {
    it(`have the standard labels of Kubernetes, and those by which they are selected: ${what}`, () => {
      assert.deepInclude(metadata.labels, labels)
      assert.deepInclude(metadata.labels, runLabels(placed, "deployment"))
      // The chart's network policies admit programs of this name to Postgres.
      assert.notStrictEqual(metadata.labels?.["app.kubernetes.io/name"], "seatrial")
      for (const value of Object.values(metadata.labels ?? {})) assert.match(value, /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/)
    })
  }

  it("pass the labels on to the download's pods, and keep the selector of the budget", () => {
    const { spec } = JSON.parse(JSON.stringify(job))
    assert.deepInclude(spec.template.metadata.labels, ofDownload)
    assert.deepStrictEqual(JSON.parse(JSON.stringify(disruptionBudget(placed, "seatrial", 1))).spec.selector.matchLabels, {
      "seatrial.dev/deployment": run.id,
      "seatrial.dev/role": "engine"
    })
  })

  it("do not make a download of an earlier version outdated", () => {
    const { spec } = JSON.parse(JSON.stringify(job))
    const earlier = { ...spec, template: { metadata: { labels: runLabels(placed, "fetch") }, spec: spec.template.spec } }
    assert.strictEqual(job.metadata.annotations?.[madeFromAnnotation], digestOf(earlier))
  })

  it("omit a version that is not known, and change one that is no label value", () => {
    const versionOf = (engineVersion: string) =>
      enginePod({ run: { ...placed, revision: { ...revision, engineVersion } }, revision, podClass, engine, settings, weightsClaim: "w" }).metadata.labels?.[
        "app.kubernetes.io/version"
      ]
    assert.strictEqual(versionOf("vllm 0.11+cu128"), "vllm-0.11-cu128")
    assert.isUndefined(versionOf("+"))
    const untagged = fetchJob({ ...download, settings: { ...settings, fetchImage: "registry:5000/seatrial@sha256:0" } }, false)
    assert.isUndefined(untagged.metadata.labels?.["app.kubernetes.io/version"])
  })
})
