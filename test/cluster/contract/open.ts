import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { KubeClient } from "@seatrial/kube"
import { JobController, LocalCluster } from "@seatrial/local"
import { Effect, Layer, Schema } from "effect"
import { parse } from "yaml"
import { layerDatabase } from "../../../packages/local/test/cluster/server.ts"
import { openCluster } from "../../e2e/cluster.ts"
import { startControlPlane } from "../ControlPlane.ts"
import { scratchFolder } from "../scratchFolder.ts"
import { KubeServer, serverAt } from "./KubeServer.ts"

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
    const directory = yield* scratchFolder("contract")
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
    const plane = yield* startControlPlane(yield* scratchFolder("contract"), { "kube-apiserver": ["--etcd-compaction-interval=3s"] })
    const { users } = Schema.decodeUnknownSync(Kubeconfig)(parse(readFileSync(plane.kubeconfig, "utf8")))
    return serverAt({ address: plane.address, token: users[0].user.token, kubectl: kubectl(plane.kubeconfig) })
  })
).pipe(Layer.orDie)
