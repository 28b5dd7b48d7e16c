import { Effect, type Scope } from "effect"
import type { Lab } from "../Lab.ts"
import { type BenchError, memoryMegabytes, type Program } from "../Program.ts"
import { until } from "./OperatorLab.ts"
import { apiWrites, type KwokCluster, rowWrites, samplesOf, since, sum } from "./writes.ts"

const watched = ["modeldeployments", "pods", "jobs", "hostclasses", "nodes", "poddisruptionbudgets"]

type Samples = ReturnType<typeof samplesOf>

/** The metrics of a program. None while it does not answer. */
export const metricsOf = ({ host, port }: Program): Effect.Effect<Samples> =>
  Effect.promise(() =>
    fetch(`http://${host}:${port}/metrics`)
      .then((answer) => answer.text())
      .catch(() => "")
  ).pipe(Effect.map(samplesOf))

/**
 * Changes one pod, as happens all the time in a cluster in use. An API server that has seen no change of pods since its last compaction reads each page
 * of their list from etcd.
 */
const touchPod = Effect.fnUntraced(function* ({ command, namespace }: KwokCluster) {
  const [pod = ""] = /dep-[a-z0-9]+-engine-0/.exec(yield* command("kubectl", ["get", "--raw", `/api/v1/namespaces/${namespace}/pods?limit=1`])) ?? []
  yield* command("kubectl", ["annotate", "--overwrite", `--namespace=${namespace}`, `pod/${pod}`, `seatrial.dev/touched=${Date.now()}`])
})

/** Starts an operator. Measures how long it takes until its watches are synced and every deployment was looked at, and its memory in MB after that. */
export const measureStart = Effect.fnUntraced(function* (cluster: KwokCluster, start: Effect.Effect<Program, BenchError, Scope.Scope>, deployments: number) {
  yield* touchPod(cluster)
  const begun = performance.now()
  const operator = yield* start
  const secondsSince = () => (performance.now() - begun) / 1_000
  const metrics = metricsOf(operator)
  const isListed = (kind: string, all: Samples) =>
    all.some(({ labels, name, value }) => name === "seatrial_kube_watch_lists_total" && labels.includes(`"${kind}"`) && value > 0)
  yield* until("the watches are there", metrics, (all) => watched.every((kind) => isListed(kind, all)), 20)
  const syncedSeconds = secondsSince()
  const attended = (all: Samples) => sum(all.filter(({ name }) => name === "seatrial_operator_deployments").map(({ value }) => value))
  // Not more often, because the metrics page of this many deployments is a megabyte.
  yield* until("all were looked at", metrics, (all) => attended(all) >= deployments, 500)
  const passSeconds = secondsSince()
  return { operator, syncedSeconds, passSeconds, resident: (yield* memoryMegabytes(operator.pid, "VmRSS")) ?? Number.NaN }
})

/** What all programs write to Kubernetes, and the rows that change in Postgres, within so many seconds after the last work has ended. */
export const quietWrites = Effect.fnUntraced(function* (lab: Lab, cluster: KwokCluster, seconds: number) {
  yield* Effect.sleep("20 seconds")
  const before = { writes: yield* apiWrites(cluster), rows: yield* rowWrites(lab) }
  yield* Effect.sleep(seconds * 1_000)
  return { writes: since(yield* apiWrites(cluster), before.writes), rows: since(yield* rowWrites(lab), before.rows) }
})
