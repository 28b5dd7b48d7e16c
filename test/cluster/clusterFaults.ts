import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Pod } from "@seatrial/kube"
import { Clock, Effect, type Scope } from "effect"
import { ask } from "../e2e/chat.ts"
import { eventually } from "../e2e/eventually.ts"
import type { Draw } from "../faults/Draw.ts"
import type { FaultStage } from "./FaultStage.ts"

/** Something that goes wrong during the run `id`. */
export interface ClusterFault {
  readonly name: string
  /** It removes the new engine, which affects no caller only before that engine serves. So it happens early, or not at all. */
  readonly early?: boolean
  /** Before the run is created; gives what happens later. */
  readonly prepare: (stage: FaultStage, seed: number) => Effect.Effect<FaultOf, never, Scope.Scope>
}
export type FaultOf = (stage: FaultStage, id: string, draw: Draw) => Effect.Effect<void>

const objectOf = (id: string) => id.replaceAll("_", "-")

const killed = (program: "kube-apiserver" | "etcd"): FaultOf =>
  Effect.fnUntraced(function* ({ cluster }, _, draw) {
    yield* cluster.kill(program)
    yield* Effect.sleep(draw.between(0, 2_000))
    yield* cluster.start(program)
    yield* eventually("the API server is back", Effect.exit(cluster.command("kubectl", ["get", "--raw", "/readyz"])), ({ _tag }) => _tag === "Success")
  })

const postgresKilled: FaultOf = Effect.fnUntraced(function* ({ caller, folder, model, outages }, id) {
  const outage = { from: yield* Clock.currentTimeMillis, to: Number.POSITIVE_INFINITY }
  outages.push(outage)
  const pid = yield* Effect.promise(() => readFile(join(folder, "postgres/data/postmaster.pid"), "utf8"))
  yield* Effect.sync(() => process.kill(Number.parseInt(pid, 10), "SIGKILL"))
  yield* eventually("the API is back", caller.call("GET", `/v1/org/deployments/${id}`), ({ status }) => status === 200)
  yield* eventually("the gateway takes requests again", ask(caller, model), ({ status }) => status === 200)
  outage.to = yield* Clock.currentTimeMillis
})

const starting: ReadonlySet<string> = new Set(["provisioning", "booting"])

/** Waits until the run's engine has a node and starts. False if the run is already past that. */
const placed = Effect.fnUntraced(function* ({ caller, cluster }: FaultStage, id: string) {
  const pods = Effect.orElseSucceed(
    cluster.kube.list(Pod, { namespace: cluster.namespace, labelSelector: `seatrial.dev/deployment=${id},seatrial.dev/role=engine` }),
    () => []
  )
  yield* eventually("the new engine has a node", pods, (found) => found.some(({ spec }) => spec?.nodeName !== undefined))
  return starting.has((yield* caller.deployment(id)).status)
})

const at = (name: string, happen: FaultOf): ClusterFault => ({ name, prepare: () => Effect.succeed(happen) })

export const operatorKilled = at("operator killed", ({ replaceOperator }) => replaceOperator)

export const clusterFaults: ReadonlyArray<ClusterFault> = [
  at("API server killed", killed("kube-apiserver")),
  at("etcd killed", killed("etcd")),
  at("Postgres killed", postgresKilled),
  at("custom resource deleted", ({ cluster }, id) =>
    Effect.ignore(cluster.command("kubectl", ["delete", "mdep", objectOf(id), `--namespace=${cluster.namespace}`, "--wait=false"]))
  ),
  {
    ...at(
      "its pod deleted",
      Effect.fnUntraced(function* (stage: FaultStage, id: string) {
        const { cluster } = stage
        if (yield* placed(stage, id))
          yield* Effect.ignore(cluster.command("kubectl", ["delete", "pod", `${objectOf(id)}-engine-0`, `--namespace=${cluster.namespace}`, "--wait=false"]))
      })
    ),
    early: true
  },
  {
    name: "its node lost",
    early: true,
    // The only node that takes the new engine dies as soon as it has it.
    prepare: Effect.fnUntraced(function* ({ cluster }, seed) {
      const name = `doomed-${seed}`
      const stop = yield* Effect.orDie(cluster.startNode(name))
      const kubectl = (...args: ReadonlyArray<string>) => Effect.orDie(cluster.command("kubectl", args))
      yield* kubectl("cordon", "sim-0", "sim-1")
      return Effect.fnUntraced(function* (stage: FaultStage, id: string) {
        if (yield* placed(stage, id)) yield* stop
        yield* kubectl("uncordon", "sim-0", "sim-1")
      })
    })
  }
]
