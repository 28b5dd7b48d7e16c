import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import type { ControlPlane } from "../cluster/ControlPlane.ts"
import { startProcess } from "../process/startProcess.ts"

const tools = join(import.meta.dirname, "../../tools/bin")
const namespace = "argocd"

const Resource = Schema.Struct({
  kind: Schema.String,
  name: Schema.String,
  status: Schema.optionalKey(Schema.String),
  health: Schema.optionalKey(Schema.Struct({ status: Schema.optionalKey(Schema.String), message: Schema.optionalKey(Schema.String) }))
})
const Result = Schema.Struct({
  kind: Schema.String,
  name: Schema.String,
  hookType: Schema.optionalKey(Schema.String),
  hookPhase: Schema.optionalKey(Schema.String)
})
const Status = Schema.Struct({
  sync: Schema.optionalKey(Schema.Struct({ status: Schema.String, revision: Schema.optionalKey(Schema.String) })),
  health: Schema.optionalKey(Schema.Struct({ status: Schema.optionalKey(Schema.String) })),
  conditions: Schema.optionalKey(Schema.Array(Schema.Struct({ type: Schema.String, message: Schema.String }))),
  resources: Schema.optionalKey(Schema.Array(Resource)),
  operationState: Schema.optionalKey(
    Schema.Struct({
      phase: Schema.String,
      message: Schema.optionalKey(Schema.String),
      syncResult: Schema.optionalKey(Schema.Struct({ revision: Schema.String, resources: Schema.optionalKey(Schema.Array(Result)) }))
    })
  )
})
export type ApplicationStatus = typeof Status.Type
const decodeStatus = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ status: Schema.optionalKey(Status) })))

/** The project that allows everything, as Argo CD makes it. */
const project = {
  apiVersion: "argoproj.io/v1alpha1",
  kind: "AppProject",
  metadata: { name: "default", namespace },
  spec: {
    sourceRepos: ["*"],
    destinations: [{ namespace: "*", server: "*" }],
    clusterResourceWhitelist: [{ group: "*", kind: "*" }]
  }
}

/** Argo CD's controller and repository server, as processes that use a control plane as the cluster that they run in. */
export const startArgoCd = Effect.fnUntraced(function* (plane: ControlPlane, settings: Readonly<Record<string, unknown>>) {
  const { command, directory, network } = plane
  const folder = join(directory, "argocd")
  yield* Effect.promise(() => mkdir(folder, { recursive: true }))
  const kubectl = (...args: ReadonlyArray<string>) => command("kubectl", [...args, "--namespace", namespace])
  yield* command("kubectl", ["create", "namespace", namespace])
  yield* command("kubectl", ["apply", "--server-side", "--kustomize", join(tools, "argocd-manifests/crds")])
  yield* command("kubectl", ["wait", "--for=condition=Established", "crd", "applications.argoproj.io", "--timeout=300s"])
  yield* kubectl("apply", "--kustomize", join(tools, "argocd-manifests/base/config"))
  yield* kubectl("patch", "configmap", "argocd-cm", "--type=merge", "--patch", JSON.stringify({ data: settings }))
  yield* kubectl(
    "patch",
    "secret",
    "argocd-secret",
    "--type=merge",
    "--patch",
    JSON.stringify({ stringData: { "server.secretkey": "a key for this test only" } })
  )
  yield* command("kubectl", ["apply", "-f", "-"], { input: JSON.stringify(project) })

  const host = `${network}.0.1`
  const redis = `${host}:6379`
  const repositoryServer = `${host}:8087`
  const env = {
    PATH: `${tools}:${process.env.PATH}`,
    HOME: folder,
    TMPDIR: folder,
    KUBECONFIG: plane.kubeconfig,
    ARGOCD_FAKE_IN_CLUSTER: "true",
    ARGOCD_GPG_ENABLED: "false",
    ARGOCD_TLS_DATA_PATH: folder,
    ARGOCD_SSH_DATA_PATH: folder,
    ARGOCD_PLUGINSOCKFILEPATH: folder,
    ARGOCD_SELF_HEAL_BACKOFF_TIMEOUT_SECONDS: "1"
  }
  const start = (program: string, ...args: ReadonlyArray<string>) =>
    startProcess([join(tools, "argocd"), ...args, "--redis", redis, "--loglevel", "info"], { env: { ...env, ARGOCD_BINARY_NAME: program } })
  yield* startProcess([join(tools, "argocdCache"), redis], { env })
  const server = yield* start(
    "argocd-repo-server",
    ...["--address", host, "--port", "8087", "--metrics-address", host, "--metrics-port", "8084", "--disable-tls"]
  )
  const controller = yield* start(
    "argocd-application-controller",
    ...["--namespace", namespace, "--kubeconfig", plane.kubeconfig, "--repo-server", repositoryServer, "--repo-server-plaintext"],
    ...["--app-resync", "3", "--metrics-port", "0", "--persist-resource-health"]
  )
  return {
    kubectl,
    apply: (object: object) => command("kubectl", ["apply", "-f", "-"], { input: JSON.stringify(object) }),
    status: (name: string) => Effect.map(kubectl("get", "application", name, "-o", "json"), (text): ApplicationStatus => decodeStatus(text).status ?? {}),
    /** The end of the programs' output. */
    output: () => `${server.output().slice(-4_000)}\n${controller.output().slice(-8_000)}`
  }
})
