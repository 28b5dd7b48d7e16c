import { mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { stringify } from "yaml"
import { startHelmCluster } from "../cluster/HelmCluster.ts"
import { AnyObject, pageBlocks } from "../cluster/pageBlocks.ts"
import { eventually } from "../e2e/eventually.ts"
import { type ApplicationStatus, startArgoCd } from "./ArgoCd.ts"
import { makeGitRepository } from "./GitRepository.ts"
import { mergeObjects } from "./mergeObjects.ts"
import { modelObjects } from "./modelObjects.ts"

const Application = Schema.Struct({
  apiVersion: Schema.String,
  kind: Schema.String,
  metadata: AnyObject,
  spec: Schema.Struct({
    ...{ project: Schema.String, destination: AnyObject, syncPolicy: AnyObject },
    source: Schema.Struct({
      targetRevision: Schema.String,
      path: Schema.String,
      helm: Schema.Struct({ releaseName: Schema.String, valuesObject: AnyObject })
    })
  })
})
type Application = typeof Application.Type
const Settings = Schema.Struct({ data: AnyObject })
const decodeValues = Schema.decodeUnknownSync(Schema.fromJsonString(AnyObject))

const unsynced = ({ resources = [] }: ApplicationStatus) => resources.filter(({ status }) => status === "OutOfSync").map(({ kind, name }) => `${kind}/${name}`)
const isSynced = (status: ApplicationStatus) => status.sync?.status === "Synced" && status.operationState?.phase === "Succeeded"
const isHealthy = (status: ApplicationStatus) => isSynced(status) && status.health?.status === "Healthy"

/** An application of the models in the folder `models` of the same repository. */
const modelsOf = (application: Application, repoURL: string) => ({
  ...application,
  metadata: { ...application.metadata, name: "models" },
  spec: { ...application.spec, source: { repoURL, targetRevision: application.spec.source.targetRevision, path: "models" } }
})

it.live(
  "Argo CD installs the chart and a model with the application of the page, finds no difference while both run, upgrades, repairs, and deletes without the definitions",
  () =>
    Effect.gen(function* () {
      const [applicationBlock, settingsBlock] = yield* Effect.promise(() => pageBlocks("argo-cd.md"))
      const application = Schema.decodeUnknownSync(Application)(applicationBlock)
      const { data } = Schema.decodeUnknownSync(Settings)(settingsBlock)
      const cluster = yield* startHelmCluster()
      const { kubectl } = cluster
      yield* kubectl("create", "secret", "generic", "seatrial-cache", `--from-literal=cache-secret=${"5".repeat(64)}`)
      const folder = join(cluster.directory, "git")
      yield* Effect.promise(() => mkdir(folder))
      const git = yield* makeGitRepository(folder)
      const argo = yield* startArgoCd(cluster, data)
      const reaches = (name: string, what: string, holds: (status: ApplicationStatus) => boolean) =>
        eventually(`${name}: ${what}`, argo.status(name), holds).pipe(Effect.tapCause(() => Effect.logError(argo.output())))

      const own = decodeValues(yield* Effect.promise(() => readFile(cluster.valuesFile, "utf8")))
      const values = mergeObjects(application.spec.source.helm.valuesObject, mergeObjects(own, { organizations: { own: "acme" } }))
      const release = (more: object = {}) => ({
        ...application,
        spec: {
          ...application.spec,
          source: { ...application.spec.source, repoURL: git.url, helm: { ...application.spec.source.helm, valuesObject: mergeObjects(values, more) } }
        }
      })
      yield* argo.apply(release())
      const installed = yield* reaches("seatrial", "installed, healthy and without a difference", isHealthy)
      assert.deepStrictEqual(unsynced(installed), [])
      const hooks = (installed.operationState?.syncResult?.resources ?? []).filter(({ hookType }) => hookType !== undefined)
      assert.includeMembers(
        hooks.map(({ hookPhase, hookType, kind, name }) => `${kind}/${name} ${hookType} ${hookPhase}`),
        ["Job/seatrial-migrate PreSync Succeeded", "Job/seatrial-weights-check Sync Succeeded"]
      )
      assert.isFalse((installed.operationState?.syncResult?.resources ?? []).some(({ kind }) => kind === "Pod"))

      yield* cluster.organization("acme", "ada@acme.test")
      yield* git.write(
        "models/tiny.yaml",
        modelObjects()
          .map((object) => stringify(object))
          .join("---\n")
      )
      yield* argo.apply(modelsOf(application, git.url))
      const served = yield* reaches("models", "the model serves, and Argo CD finds no difference", isHealthy)
      assert.deepStrictEqual(unsynced(served), [])
      assert.deepStrictEqual(
        (served.resources ?? []).map(({ health, kind, status }) => [kind, status, health?.status]),
        [
          ["HostClass", "Synced", "Healthy"],
          ["ModelDeployment", "Synced", "Healthy"]
        ]
      )

      // Argo CD repairs an object that differs from Git.
      yield* kubectl("scale", "deployment", "seatrial-server", "--replicas=0")
      const replicas = kubectl("get", "deployment", "seatrial-server", "-o", "jsonpath={.spec.replicas}")
      yield* eventually("Argo CD repairs the number of servers", replicas, (count) => count === "1")
      yield* reaches("seatrial", "healthy after the repair", isHealthy)

      // An upgrade repeats the hooks.
      const before = (yield* argo.status("seatrial")).operationState?.syncResult?.revision
      yield* git.write("charts/seatrial/README.md", "A commit that changes no object\n")
      yield* argo.apply(release({ server: { replicas: 2 } }))
      yield* eventually("two servers run", replicas, (count) => count === "2")
      const upgraded = yield* reaches("seatrial", "upgraded", (status) => isHealthy(status) && status.operationState?.syncResult?.revision !== before)
      assert.deepStrictEqual(unsynced(upgraded), [])
      assert.strictEqual((yield* argo.status("models")).health?.status, "Healthy")

      // Without the model first: its finalizer needs the operator.
      for (const name of ["models", "seatrial"]) {
        yield* argo.kubectl(
          "patch",
          "application",
          name,
          "--type=merge",
          "--patch",
          JSON.stringify({ metadata: { finalizers: ["resources-finalizer.argocd.argoproj.io"] } })
        )
        yield* argo.kubectl("delete", "application", name, "--timeout=10m")
      }
      assert.strictEqual((yield* kubectl("get", "deployments", "-o", "name")).trim(), "")
      assert.match(yield* cluster.command("kubectl", ["get", "crd", "-o", "name"]), /modeldeployments\.seatrial\.dev/u)
      assert.match(yield* kubectl("get", "pvc", "-o", "name"), /seatrial-weights/u)
    }).pipe(Effect.scoped),
  1_800_000
)
