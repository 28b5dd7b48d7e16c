import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { KubeClient } from "@seatrial/kube"
import { NodeAgent, SampleHub, type SampleRepository } from "@seatrial/local"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { inject } from "vitest"
import { makeCaller } from "../e2e/Caller.ts"
import { runCommand } from "../e2e/ChildProgram.ts"
import { openCluster } from "../e2e/cluster.ts"
import { prepareAudit } from "./auditLog.ts"
import { builtImage } from "./buildImage.ts"
import { startControlPlane } from "./ControlPlane.ts"
import { postgresImage, withName } from "./postgresImage/postgresImage.ts"
import { simulatedNode } from "./RealCluster.ts"
import { scratchFolder } from "./scratchFolder.ts"
import { serviceProxy } from "./serviceProxy.ts"
import { lateStorage, localVolume, simulatedHostClass } from "./simulatedHostClass.ts"
import { withMigration } from "./withMigration.ts"

const namespace = "seatrial"
const image = "ghcr.io/seatrial/seatrial"

const objects = (database: string, late: boolean) => [
  {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "seatrial-database", namespace },
    stringData: { url: database }
  },
  {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "seatrial-keys", namespace },
    stringData: { "encryption-key": encryptionKey, "cursor-key": "a key for this test only" }
  },
  { apiVersion: "v1", kind: "Secret", metadata: { name: "seatrial-postgres", namespace }, stringData: { password } },
  ...(late ? [lateStorage] : []),
  ...["seatrial-weights", "data-seatrial-postgres-0"].map((claim) => localVolume(claim, namespace, late ? lateStorage.metadata.name : ""))
]

const password = "aPasswordForThisTestOnly"
const encryptionKey = Buffer.alloc(32, 5).toString("base64")

/** The host class of the nodes here, whose engines run in the product's own image. */
export const hostClass = (name = "sim-small", more: Readonly<Record<string, unknown>> = {}) => simulatedHostClass(name, { image: `${image}:0.1.0`, ...more })

export interface HelmClusterOptions {
  /** Whether the nodes can run the chart's own Postgres; then claims are bound for pods only. */
  readonly embedded?: boolean
  /** Statements of additional migrations in the images of these tags. */
  readonly migrations?: Readonly<Record<string, ReadonlyArray<string>>>
  /** What the hub has; the sample model where absent. */
  readonly repositories?: ReadonlyArray<SampleRepository>
}

const KeyMade = Schema.fromJsonString(Schema.Struct({ secret: Schema.String }))

/**
 * A real control plane on whose two nodes the chart can be installed: pods run here as processes of the image that the Containerfile makes, listen on addresses of their own,
 * and reach the test's Postgres and a sample hub. There is no cluster network: `server` and `gateway` stand for the chart's Services.
 */
export const startHelmCluster = Effect.fnUntraced(function* ({ embedded = false, migrations = {}, repositories }: HelmClusterOptions = {}) {
  const directory = yield* scratchFolder("helm")
  const audit = yield* prepareAudit(directory)
  const flags = {
    "kube-apiserver": audit.flags,
    "kube-controller-manager": [`--root-ca-file=${join(directory, "plane/certs/apiserver.crt")}`]
  }
  const [plane, programs] = yield* Effect.all([startControlPlane(join(directory, "plane"), flags), builtImage], { concurrency: 2 })
  const { command } = plane
  // The address of the chart's own Postgres, whose pod listens on the machine's address.
  const host = `${plane.network}.0.1`
  const database = embedded ? `postgres://seatrial:${password}@${host}:5432/seatrial` : Redacted.value(yield* makeEmptyDatabase(inject("postgres")))
  const product = embedded ? yield* withName(programs, join(directory, "names"), "seatrial-postgres", host) : programs
  const later = yield* Effect.forEach(Object.entries(migrations), ([tag, statements], at) =>
    Effect.map(withMigration(programs, join(directory, tag), 9_000 + at, statements), (made) => [`${image}:${tag}`, made] as const)
  )
  const postgres = embedded ? { "docker.io/library/postgres": yield* postgresImage(join(directory, "postgres"), host) } : {}
  // The account of Postgres has to reach the volumes.
  yield* Effect.promise(() => mkdir(join(directory, "nodes/volumes"), { recursive: true, mode: 0o755 }))
  yield* command("kubectl", ["create", "namespace", namespace])
  yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], {
    input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects(database, embedded) })
  })
  const kube = yield* openCluster(plane.kubeconfig)
  yield* Layer.build(
    NodeAgent.layer({
      directory: join(directory, "nodes"),
      nodes: [simulatedNode("sim-0", 4), simulatedNode("sim-1", 4)],
      images: { [image]: product, ...Object.fromEntries(later), ...postgres },
      network: plane.network,
      tls: plane.tls,
      apiServer: plane.address
    }).pipe(Layer.provide(Layer.succeed(KubeClient, kube)))
  )
  const hub = Context.get(yield* Layer.build(SampleHub.layer({ port: 0, ...(repositories === undefined ? {} : { repositories }) })), SampleHub)
  const server = yield* serviceProxy(kube, { namespace, component: "server", port: 8080 })
  const gateway = yield* serviceProxy(kube, { namespace, component: "gateway", port: 8081 })

  /** What this machine's cluster needs: all pods share one machine, so that each listens on its own address. */
  const values = {
    image: { repository: image },
    hub: { endpoint: hub.address },
    server: { replicas: 1, env: { SERVER_HOST: "$(POD_IP)", SERVER_METRICS_HOST: "$(POD_IP)" } },
    gateway: { replicas: 1, graceSeconds: 20, env: { GATEWAY_HOST: "$(POD_IP)", GATEWAY_METRICS_HOST: "$(POD_IP)" } },
    operator: { replicas: 1, leaseSeconds: 3, env: { OPERATOR_HOST: "$(POD_IP)" } },
    weights: { size: "100Gi" },
    tests: { server: server.address, gateway: gateway.address }
  }
  const valuesFile = join(directory, "values.json")
  yield* Effect.promise(() => writeFile(valuesFile, JSON.stringify(values)))
  const settings = { DATABASE_URL: database, SEATRIAL_ENCRYPTION_KEY: encryptionKey }
  const admin = (...args: ReadonlyArray<string>) => runCommand(["admin", ...args], settings)
  return {
    ...plane,
    namespace,
    kube,
    database,
    valuesFile,
    server,
    gateway,
    helm: (...args: ReadonlyArray<string>) => command("helm", [...args, "--namespace", namespace]),
    kubectl: (...args: ReadonlyArray<string>) => command("kubectl", [...args, "--namespace", namespace]),
    audit: audit.path,
    admin,
    /** Makes an organization that may deploy, with one member. */
    organization: Effect.fnUntraced(function* (slug: string, email: string) {
      yield* admin("orgs", "create", slug)
      yield* admin("members", "add", "--org", slug, "--email", email, "--role", "owner")
      yield* admin("purchases", "record", "--org", slug, "1000000")
    }),
    /** Callers of API and gateway with a key of that member. */
    caller: Effect.fnUntraced(function* (org: string, email: string) {
      const { secret } = Schema.decodeUnknownSync(KeyMade)(yield* admin("keys", "create", "--org", org, "--email", email, "--json"))
      return { api: makeCaller(server.address, secret), inference: makeCaller(gateway.address, secret) }
    })
  }
})
