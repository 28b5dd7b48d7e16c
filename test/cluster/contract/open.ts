import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { KubeClient } from "@seatrial/kube"
import { JobController, LocalCluster } from "@seatrial/local"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { parse } from "yaml"
import { openCluster } from "../../e2e/cluster.ts"
import { startControlPlane } from "../ControlPlane.ts"
import { KubeServer, serverAt } from "./KubeServer.ts"

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-contract-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
)

const connect = (database: string) => PgClient.layer({ url: Redacted.make(`${inject("postgres")}/${database}`), maxConnections: 3 })

/** A database of its own, dropped with the scope. */
export const layerDatabase = Layer.unwrap(
  Effect.gen(function* () {
    const name = `contract_${randomBytes(6).toString("hex")}`
    const run = (statement: string) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql.unsafe(statement)
      }).pipe(Effect.provide(connect("postgres")), Effect.orDie)
    yield* Effect.acquireRelease(run(`CREATE DATABASE ${name}`), () => run(`DROP DATABASE ${name} WITH (FORCE)`))
    return connect(name)
  })
)

const kubectl = (kubeconfig: string) => (args: ReadonlyArray<string>, input?: string) =>
  Effect.callback<string>((resume) => {
    const file = join(import.meta.dirname, "../../../tools/bin/kubectl")
    const child = execFile(file, [...args], { env: { KUBECONFIG: kubeconfig, HOME: tmpdir() } }, (error, stdout, stderr) =>
      resume(error === null ? Effect.succeed(stdout) : Effect.die(new Error(`kubectl ${args.join(" ")}: ${stderr || error.message}`)))
    )
    child.stdin?.end(input ?? "")
  })

/** The local cluster, with its own garbage collector and Job controller. */
export const layerLocal = Layer.effect(
  KubeServer,
  Effect.gen(function* () {
    const directory = yield* folder
    // What was before it started is forgotten to its watches, as with a server that has compacted.
    yield* Effect.scoped(LocalCluster.make({ port: 0 }))
    const cluster = yield* LocalCluster.make({ port: 0 })
    const kubeconfig = join(directory, "kubeconfig")
    yield* Effect.promise(() => writeFile(kubeconfig, cluster.kubeconfig, { mode: 0o600 }))
    const kube = yield* openCluster(kubeconfig)
    yield* Layer.build(JobController.layer.pipe(Layer.provide(Layer.succeed(KubeClient, kube))))
    return serverAt({ address: cluster.address, token: cluster.token, kubectl: kubectl(kubeconfig) })
  })
).pipe(Layer.provide(layerDatabase), Layer.orDie)

const Kubeconfig = Schema.Struct({ users: Schema.NonEmptyArray(Schema.Struct({ user: Schema.Struct({ token: Schema.String }) })) })

/** A real control plane: etcd, the API server, the controllers and the scheduler. */
export const layerReal = Layer.effect(
  KubeServer,
  Effect.gen(function* () {
    const plane = yield* startControlPlane(yield* folder, { "kube-apiserver": ["--etcd-compaction-interval=3s"] })
    const { users } = Schema.decodeUnknownSync(Kubeconfig)(parse(readFileSync(plane.kubeconfig, "utf8")))
    return serverAt({ address: plane.address, token: users[0].user.token, kubectl: kubectl(plane.kubeconfig) })
  })
).pipe(Layer.orDie)
